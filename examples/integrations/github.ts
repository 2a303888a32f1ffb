import { defineNode, fatal, Type } from 'capstan/build';
import { type Answer, send, setting } from './http.ts';

/** Sends a request to the REST API. */
function github(method: string, path: string, signal: AbortSignal, body?: object): Promise<Answer> {
  return send('github', `${setting('GITHUB_API_URL', 'https://api.github.com')}${path}`, {
    method,
    headers: {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${setting('GITHUB_TOKEN')}`,
      'x-github-api-version': '2022-11-28',
      'user-agent': 'capstan-example',
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    signal,
  });
}

interface Created {
  readonly number: number;
  readonly html_url: string;
}

function created({ status, text }: Answer): { number: number; url: string } {
  const answer = JSON.parse(text) as Created & { readonly message?: string };
  if (status >= 400) throw fatal('github_refused', `GitHub answered ${status}: ${answer.message}`);
  return { number: answer.number, url: answer.html_url };
}

const outputs = Type.Object({ number: Type.Number(), url: Type.String() });
const repository = Type.String({ description: 'owner/name', pattern: '^[\\w.-]+/[\\w.-]+$' });

/** Opens an issue. GitHub does not recognise repetitions: a host that dies in the middle may open it again. */
export const createIssue = defineNode({
  typeId: 'github.createIssue',
  description: 'Opens an issue in a repository of GitHub.',
  safety: 'write',
  tool: true,
  inputs: Type.Object({
    repository,
    title: Type.String(),
    body: Type.Optional(Type.String()),
    labels: Type.Optional(Type.Array(Type.String())),
  }),
  outputs,
  run: ({ inputs: { repository, ...issue }, effect }) =>
    effect('create', async ({ signal }) => created(await github('POST', `/repos/${repository}/issues`, signal, issue))),
});

/** Opens a pull request. There is one for each pair of branches: if it is there already, that is the result. */
export const openPullRequest = defineNode({
  typeId: 'github.openPullRequest',
  description: 'Opens a pull request in a repository of GitHub, from one branch to another.',
  safety: 'write',
  inputs: Type.Object({
    repository,
    title: Type.String(),
    head: Type.String({ description: 'the branch with the changes' }),
    base: Type.String({ description: 'the branch that they go to' }),
    body: Type.Optional(Type.String()),
  }),
  outputs,
  run: ({ inputs: { repository, ...pull }, effect }) =>
    effect('open', async ({ signal }) => {
      const path = `/repos/${repository}/pulls`;
      const answer = await github('POST', path, signal, pull);
      if (answer.status !== 422) return created(answer);
      const [owner] = repository.split('/');
      const query = new URLSearchParams({ head: `${owner}:${pull.head}`, base: pull.base, state: 'open' });
      const { text } = await github('GET', `${path}?${query}`, signal);
      const [open] = JSON.parse(text) as Created[];
      return open ? { number: open.number, url: open.html_url } : created(answer);
    }),
});

export const githubNodes = [createIssue, openPullRequest];

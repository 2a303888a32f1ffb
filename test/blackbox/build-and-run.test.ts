import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, inject, it } from 'vitest';
import { KEYS } from '../support/host.ts';
import { eventsOf } from '../support/interrupts.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { type HostProcess, runProgram } from '../support/process.ts';
import { fromGitHub, ISSUE_OPENED, send } from '../support/senders.ts';
import { until } from '../support/until.ts';

/**
 * Goal: from an empty folder to a finished run, with everything that a project has, and each effect once though the host
 * and the worker are killed in the middle of three of them. Method: real processes, and a service outside that performs
 * what it has not performed under the same key, and can keep its answer to itself.
 */

const BUILD = "'capstan/build'";
const TRIGGERS = '/v1/host/capstan/triggers';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const { start, kill, stop, newFolder } = killableHosts();

/** The world: what was asked of it, and what it did. */
class World {
  readonly asked: string[] = [];
  readonly done = new Map<string, string>();
  readonly silentAbout = new Set<string>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const what = (request.url ?? '').slice(1);
      this.asked.push(what);
      this.done.set(String(request.headers['idempotency-key']), what);
      if (this.silentAbout.has(what)) return;
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ did: what }));
    });
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const world = new World();
const working = new Set<ChildProcess>();
afterAll(() => {
  for (const worker of working) worker.kill('SIGKILL');
  world.close();
});

const code = (url: string): string => `import { defineNode, defineProject, defineWorkflow, Type } from ${BUILD};

const ask = async (what: string, idempotencyKey: string): Promise<string> => {
  const response = await fetch(\`${url}/\${what}\`, { method: 'POST', headers: { 'idempotency-key': idempotencyKey } });
  return ((await response.json()) as { did: string }).did;
};

const customerOf = defineNode({
  typeId: 'acme.customerOf',
  description: 'Says which plan the author of an issue has.',
  safety: 'read',
  tool: true,
  inputs: Type.Object({ login: Type.String() }),
  outputs: Type.Object({ plan: Type.String() }),
  run: async ({ inputs, effect }) => {
    await effect('look up', ({ idempotencyKey }) => ask('customer', idempotencyKey));
    return { plan: inputs.login === 'octocat' ? 'enterprise' : 'free' };
  },
});

const reply = defineNode({
  typeId: 'acme.reply',
  description: 'Labels an issue and answers it.',
  safety: 'write',
  inputs: Type.Object({ number: Type.Number(), text: Type.String() }),
  outputs: Type.Object({ label: Type.String(), comment: Type.String() }),
  run: async ({ effect }) => ({
    label: await effect('label', ({ idempotencyKey }) => ask('label', idempotencyKey)),
    comment: await effect('comment', ({ idempotencyKey }) => ask('comment', idempotencyKey)),
  }),
});

const tell = defineNode({
  typeId: 'acme.tell',
  description: 'Tells the team.',
  safety: 'write',
  inputs: Type.Object({ title: Type.String() }),
  run: async ({ inputs, effect }) => ({
    title: inputs.title,
    told: await effect('tell', ({ idempotencyKey }) => ask('tell', idempotencyKey)),
  }),
});

const onIssue = defineWorkflow(
  {
    id: 'on-issue',
    name: 'On a new issue',
    variables: { number: Type.Number(), title: Type.String(), login: Type.String() },
    triggers: [
      {
        id: 'issues',
        type: 'webhook',
        config: {
          scheme: 'github',
          filter: "headers['x-github-event'] == 'issues' && body.action == 'opened'",
          inputs: { number: 'body.issue.number', title: 'body.issue.title', login: 'body.issue.user.login' },
        },
      },
    ],
  },
  ({ node, gate, variables }) => {
    const triage = node('triage', 'core.agents.run', {
      config: { systemPrompt: 'You sort issues.', tools: ['openwop:acme.customerOf'], provider: 'play', model: 'small' },
      inputs: { login: variables.login, title: variables.title },
    });
    const approval = gate('approval', { title: 'Answer it?', after: triage });
    const answer = node('answer', reply, {
      inputs: { number: variables.number, text: triage.output('finalMessage') },
      after: approval,
    });
    node('team', tell, { inputs: { title: variables.title }, after: answer });
  },
);

export default defineProject({ nodes: [customerOf, reply, tell], workflows: [onIssue] });
`;

const SCRIPT = {
  answers: [
    { when: { contains: 'enterprise' }, content: 'Answer today.' },
    {
      when: { contains: 'octocat' },
      toolCalls: [{ id: '1', name: 'openwop_acme_customerOf', arguments: { inputs: { login: 'octocat' } } }],
    },
  ],
};

/** A project that was made by the program, with code of its own. */
async function projectFor(url: string): Promise<string> {
  const folder = join(newFolder(), 'my-agent');
  const made = await runProgram(['init', folder], {});
  expect(made, made.output).toMatchObject({ code: 0 });
  writeFileSync(join(folder, 'capstan.config.ts'), code(url));
  writeFileSync(join(folder, 'model.json'), JSON.stringify(SCRIPT));
  return folder;
}

interface Place {
  readonly host: HostProcess;
  readonly worker: ChildProcess;
}

async function startBoth(folder: string): Promise<Place> {
  const models = [{ provider: 'play', kind: 'scripted', script: join(folder, 'model.json'), models: ['small'] }];
  const host = await start({ CAPSTAN_DATA: join(folder, '.capstan'), CAPSTAN_MODELS: JSON.stringify(models) });
  const args = [inject('program'), 'worker', '--project', folder, '--lease', '1'];
  const { PATH = '' } = process.env;
  const worker = spawn(process.execPath, args, { env: { PATH, CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key } });
  working.add(worker);
  return { host, worker };
}

async function killBoth({ host, worker }: Place): Promise<void> {
  const gone = once(worker, 'close');
  worker.kill('SIGKILL');
  await Promise.all([gone, kill(host)]);
  working.delete(worker);
}

it('a project goes from nothing to a finished run, through three deaths, and does each thing once', async () => {
  const folder = await projectFor(await world.open());
  for (const what of ['customer', 'comment']) world.silentAbout.add(what);
  let place = await startBoth(folder);
  const owner = () => place.host.as('owner');
  await until(
    async () => (await owner().get('/v1/host/capstan/workers/types')).body.items,
    ({ length }) => length === 3,
  );
  const environment = () => ({ CAPSTAN_URL: place.host.url, CAPSTAN_KEY: KEYS.owner.key });
  const pushed = await runProgram(['workflows', 'push', folder, '--quiet'], environment());
  expect(pushed).toEqual({ code: 0, output: 'on-issue\n' });
  const [trigger] = (await owner().get(`${TRIGGERS}?workflowId=on-issue`)).body.items;
  await owner().post(`${TRIGGERS}/${trigger.id}:rotate`, { secret: SECRET });

  const delivery = fromGitHub(SECRET, ISSUE_OPENED);
  const delivered = await send(trigger.url, delivery);
  expect(delivered.status, delivered.text).toBe(202);
  const { runId } = delivered.body;
  expect((await send(trigger.url, delivery)).body).toMatchObject({ runId, duplicate: true });

  // In the middle of the call that the agent makes.
  await until(
    async () => world.asked,
    (asked) => asked.includes('customer'),
  );
  await killBoth(place);
  world.silentAbout.delete('customer');
  place = await startBoth(folder);
  const asks = ({ interrupt }: { interrupt?: { kind: string } }): boolean => interrupt?.kind === 'approval';
  const waiting = await owner().until(runId, asks);
  expect(waiting.nodeStates.triage.outputs).toMatchObject({ finalMessage: 'Answer today.' });

  // While a person is asked.
  await killBoth(place);
  place = await startBoth(folder);
  await owner().until(runId, asks);
  await owner().post(`/v1/runs/${runId}/interrupts/approval`, { resumeValue: { action: 'accept' } });

  // Between two effects of a node, in the middle of the second.
  await until(
    async () => world.asked,
    (asked) => asked.includes('comment'),
  );
  await killBoth(place);
  world.silentAbout.delete('comment');
  place = await startBoth(folder);
  const ended = await owner().ended(runId);
  expect(ended).toMatchObject({
    status: 'completed',
    nodeStates: {
      answer: { outputs: { label: 'label', comment: 'comment' } },
      team: { outputs: { title: 'Found a bug', told: 'tell' } },
    },
  });
  expectSoundLog(await owner().events(runId));
  expect(await eventsOf(owner(), runId, 'agent.toolReturned')).toMatchObject([
    { payload: { status: 'ok', outcome: { plan: 'enterprise' } } },
  ]);
  // What was under way when they died is attempted again, under its key.
  expect([...world.done.values()].sort()).toEqual(['comment', 'customer', 'label', 'tell']);
  const timesAsked = (what: string): number => world.asked.filter((asked) => asked === what).length;
  expect(Math.min(timesAsked('comment'), timesAsked('customer'))).toBeGreaterThanOrEqual(2);
  const { body: runs } = await owner().get(`/v1/host/capstan/runs?tag=trigger:${trigger.id}`);
  expect(runs.items.map((run: { runId: string }) => run.runId)).toEqual([runId]);

  const askedBefore = world.asked.length;
  const { body: replay } = await owner().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
  expect((await owner().ended(replay.runId)).status).toBe('completed');
  expect(world.asked, 'a replay asks nobody').toHaveLength(askedBefore);
  const gone = once(place.worker, 'close');
  place.worker.kill('SIGTERM');
  expect((await gone)[0]).toBe(0);
  await stop(place.host);
}, 120_000);

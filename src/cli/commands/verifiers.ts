import { defined } from '../../protocol/format/json.ts';
import type { Verifier, VerifierKind, VerifierRequest } from '../../protocol/learning/verifiers.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { table } from '../text.ts';
import { jsonObject, text, texts } from '../values.ts';
import { type NamedThings, removal, showing } from './named-things.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const VERIFIERS: NamedThings = { group: 'verifiers', takes: '<verifierId>', exampleId: 'release-ready' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Verifiers, what was changed last first',
  flags: PAGE_FLAGS,
  example: 'verifiers list',
  async run(context, { options }) {
    const page = await (await context.client()).listVerifiers(pageQuery(options));
    const row = ({ id, version, kind, createdAt, description }: Verifier) => [
      id,
      version,
      kind,
      createdAt,
      description ?? '',
    ];
    context.show(
      page,
      () => [...table(['VERIFIER', 'VERSION', 'KIND', 'SINCE', 'FOR'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = showing(VERIFIERS, 'A verifier; id@version for an earlier version', (client, id) => client.getVerifier(id));

const put: CommandSpec = {
  name: 'put',
  takes: '[verifierId]',
  summary: 'Say how something is judged; for an id that there is already, as a new version',
  flags: {
    '--criterion <key=expression...>': 'a CEL expression that must be true; several make one verifier',
    '--schema <json>': 'a JSON Schema that the outputs must fit: JSON, @file, or -',
    '--workflow <id>': 'a workflow whose run gives the verdict',
    '--rubric <text>': 'what a model judges by',
    '--model <name>': 'provider, or provider/model, that judges by the rubric',
    '--body <json>': 'all of it as the host takes it, instead: a JSON object, @file, or -',
    '--description <text>': 'what it is for',
  },
  example: `verifiers put release-ready --criterion 'tests=outputs.test.failed == 0'`,
  async run(context, { args: [id], options }) {
    const body = text(options.body);
    const schema = text(options.schema);
    const given = body
      ? await jsonObject(context.terminal, body, '--body')
      : {
          ...kindOf(options),
          ...(schema ? { schema: await jsonObject(context.terminal, schema, '--schema') } : {}),
          ...defined({ workflowId: text(options.workflow), rubric: text(options.rubric), model: text(options.model) }),
        };
    const request = { ...defined({ id, description: text(options.description) }), ...given } as VerifierRequest;
    const verifier = await (await context.client()).putVerifier(request);
    context.show(
      verifier,
      () => [`${verifier.id}@${verifier.version} judges by ${verifier.kind}.`],
      () => [verifier.id],
    );
    return EXIT.done;
  },
};

/** The kind that what was given belongs to. */
function kindOf(options: Readonly<Record<string, unknown>>): Partial<VerifierRequest> {
  const criteria = texts(options.criterion as string[] | undefined).map(criterion);
  const kinds: VerifierKind[] = [
    ...(criteria.length > 0 ? (['criteria'] as const) : []),
    ...(['schema', 'workflow'] as const).filter((kind) => options[kind] !== undefined),
    ...(options.rubric === undefined ? [] : (['model'] as const)),
  ];
  const [kind, ...others] = kinds;
  if (kind === undefined || others.length > 0) {
    throw new UsageError('Give --criterion, --schema, --workflow or --rubric, or all of it with --body.');
  }
  return { kind, ...(criteria.length > 0 ? { criteria } : {}) };
}

function criterion(given: string): { key: string; expression: string } {
  const [, key, expression] = /^([^=]+)=(.+)$/s.exec(given) ?? [];
  if (key === undefined) throw new UsageError(`--criterion ${given} is not of the form key=expression.`);
  return { key: key.trim(), expression: expression!.trim() };
}

const remove = removal(VERIFIERS, 'Remove a verifier; verdicts that it gave stay', (client, id) =>
  client.deleteVerifier(id),
);

export const verifiers: CommandGroup = {
  name: 'verifiers',
  summary: 'Say what is good enough',
  commands: [list, get, put, remove],
};

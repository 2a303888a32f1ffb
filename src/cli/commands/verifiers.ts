import { defined } from '../../protocol/format/json.ts';
import type { Verifier, VerifierKind, VerifierRequest } from '../../protocol/learning/verifiers.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { table } from '../text.ts';
import { listOption, parseJsonObject, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand, getCommand, type Resource } from './resource-commands.ts';

const VERIFIERS: Resource = { group: 'verifiers', takes: '<verifierId>', exampleId: 'release-ready' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List verifiers, last changed first',
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
      () => [
        ...table(
          ['VERIFIER', 'VERSION', 'KIND', 'CREATED', 'DESCRIPTION'],
          page.items.map(row),
          'No verifiers. Make one with: capstan verifiers put <id> --criterion key=expression',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = getCommand(VERIFIERS, 'Show a verifier; use id@version for an earlier version', (client, id) =>
  client.getVerifier(id),
);

const put: CommandSpec = {
  name: 'put',
  takes: '[verifierId]',
  summary: 'Create a verifier, or a new version of an existing one',
  flags: {
    '--criterion <key=expression...>': 'a CEL expression that must be true; all of them must hold',
    '--schema <json>': 'a JSON Schema that the outputs must match: JSON, @file, or - for standard input',
    '--workflow <id>': 'a workflow whose run returns the verdict',
    '--rubric <text>': 'the criteria for a model, as text',
    '--model <name>': 'provider, or provider/model, that applies the rubric',
    '--body <json>': 'the whole request instead of single flags: a JSON object, @file, or - for standard input',
    '--description <text>': 'a description',
  },
  example: `verifiers put release-ready --criterion 'tests=outputs.test.failed == 0'`,
  async run(context, { args: [id], options }) {
    const body = stringOption(options.body);
    const schema = stringOption(options.schema);
    const given = body
      ? await parseJsonObject(context.terminal, body, '--body')
      : {
          ...kindOf(options),
          ...(schema ? { schema: await parseJsonObject(context.terminal, schema, '--schema') } : {}),
          ...defined({
            workflowId: stringOption(options.workflow),
            rubric: stringOption(options.rubric),
            model: stringOption(options.model),
          }),
        };
    const request = { ...defined({ id, description: stringOption(options.description) }), ...given } as VerifierRequest;
    const verifier = await (await context.client()).putVerifier(request);
    context.show(
      verifier,
      () => [`Stored ${verifier.id}@${verifier.version} (${verifier.kind}).`],
      () => [verifier.id],
    );
    return EXIT.done;
  },
};

/** Derives the kind of the verifier from the flags; exactly one kind must be given. */
function kindOf(options: Readonly<Record<string, unknown>>): Partial<VerifierRequest> {
  const criteria = listOption(options.criterion as string[] | undefined).map(parseCriterion);
  const kinds: VerifierKind[] = [
    ...(criteria.length > 0 ? (['criteria'] as const) : []),
    ...(['schema', 'workflow'] as const).filter((kind) => options[kind] !== undefined),
    ...(options.rubric === undefined ? [] : (['model'] as const)),
  ];
  const [kind, ...others] = kinds;
  if (kind === undefined || others.length > 0) {
    throw new UsageError(
      'Use exactly one of --criterion, --schema, --workflow and --rubric, or --body for the whole request.',
    );
  }
  return { kind, ...(criteria.length > 0 ? { criteria } : {}) };
}

function parseCriterion(given: string): { key: string; expression: string } {
  const [, key, expression] = /^([^=]+)=(.+)$/s.exec(given) ?? [];
  if (key === undefined) throw new UsageError(`--criterion ${given} must have the form key=expression.`);
  return { key: key.trim(), expression: expression!.trim() };
}

const remove = deleteCommand(VERIFIERS, 'Delete a verifier; its verdicts remain', (client, id) =>
  client.deleteVerifier(id),
);

/** `capstan verifiers`. */
export const verifiers: CommandGroup = {
  name: 'verifiers',
  summary: 'Manage the verifiers that judge runs',
  commands: [list, get, put, remove],
};

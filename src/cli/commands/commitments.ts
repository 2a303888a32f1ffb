import { defined } from '../../protocol/format/json.ts';
import type { Commitment, CommitmentRequest, CommitmentState } from '../../protocol/starting/commitments.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { withWorkflow } from '../nearest-workflow.ts';
import { table } from '../text.ts';
import { inputsFromOptions, parseInteger, stringOption, UNDECLARED_FLAG } from '../values.ts';
import { OBSERVATION_FLAGS, observationFromOptions } from './observations.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand, getCommand, type Resource, switchCommand } from './resource-commands.ts';

const STATES: readonly CommitmentState[] = ['armed', 'fired', 'failed', 'off'];
const EVERY_SEC = 60;
const COMMITMENTS: Resource = { group: 'commitments', takes: '<commitmentId>', exampleId: 'cmt-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List commitments, newest first',
  flags: { '--state <state>': `one of ${STATES.join(', ')}`, ...PAGE_FLAGS },
  example: 'commitments list --state armed',
  async run(context, { options }) {
    const state = stringOption(options.state) as CommitmentState | undefined;
    if (state && !STATES.includes(state)) {
      throw new UsageError(`--state must be one of ${STATES.join(', ')}.`);
    }
    const page = await (await context.client()).listCommitments({ ...defined({ state }), ...pageQuery(options) });
    const row = ({ id, state: commitmentState, condition, workflowId, nextCheckAt, runId }: Commitment) => [
      id,
      commitmentState,
      condition,
      workflowId,
      nextCheckAt ?? '',
      runId ?? '',
    ];
    const columns = ['COMMITMENT', 'STATE', 'CONDITION', 'STARTS', 'NEXT', 'RUN'];
    context.show(
      page,
      () => [
        ...table(columns, page.items.map(row), 'No commitments. Make one with: capstan commitments create --help'),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = getCommand(COMMITMENTS, 'Show a commitment and the run that it started', (client, id) =>
  client.getCommitment(id),
);

const create: CommandSpec = {
  name: 'create',
  takes: '<workflowId>',
  summary: 'Run a workflow once, at a time or when a condition becomes true',
  flags: {
    '--memory <ref>': 'the memory that the commitment comes from',
    '--intention <text>': 'description of the commitment',
    '--at <time>': 'when to run, for example 2026-12-31T09:00:00Z',
    ...OBSERVATION_FLAGS,
    '--when <expression>': 'CEL condition over `observed`; runs when it becomes true, instead of --at',
    '--every <seconds>': `interval between checks (${EVERY_SEC}); with --at, repeat after this interval`,
    '--repeat': 'run again each time the condition becomes true',
    '--input <json>': 'inputs of the run: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input',
    ...UNDECLARED_FLAG,
  },
  example: 'commitments create follow-up --memory mem://sales --at 2027-01-04T09:00:00Z',
  async run(context, { args: [workflowId = ''], options }) {
    const memoryRef = stringOption(options.memory);
    const when = stringOption(options.when);
    const at = stringOption(options.at);
    if (memoryRef === undefined)
      throw new UsageError('--memory is required: the memory that the commitment comes from.');
    if ((at === undefined) === (when === undefined)) throw new UsageError('Use either --at or --when.');
    const inputs = await inputsFromOptions(context, options, () => workflowId);
    const every = stringOption(options.every);
    const everySec = parseInteger(every ?? String(EVERY_SEC), '--every');
    const repeats = options.repeat === true ? { repeats: true } : {};
    const request: CommitmentRequest = {
      memoryRef,
      workflowId,
      ...defined({ intention: stringOption(options.intention), at }),
      ...(at !== undefined && every !== undefined ? { everySec } : {}),
      ...(when === undefined
        ? {}
        : { predicate: { observe: observationFromOptions(options), when, everySec, ...repeats } }),
      ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    };
    const client = await context.client();
    const commitment = await withWorkflow(client, workflowId, () => client.createCommitment(request));
    context.show(
      commitment,
      () => [`Created ${commitment.id}. Next check: ${commitment.nextCheckAt}.`],
      () => [commitment.id],
    );
    return EXIT.done;
  },
};

const remove = deleteCommand(COMMITMENTS, 'Delete a commitment; a run that has started continues', (client, id) =>
  client.deleteCommitment(id),
);

/** `capstan commitments`. */
export const commitments: CommandGroup = {
  name: 'commitments',
  summary: 'Run a workflow once, when it is due',
  commands: [
    list,
    get,
    create,
    switchCommand('pause', COMMITMENTS, 'Pause a commitment', (client, id) => client.pauseCommitment(id)),
    switchCommand('resume', COMMITMENTS, 'Resume a paused commitment', (client, id) => client.resumeCommitment(id)),
    remove,
  ],
};

import { defined } from '../../protocol/format/json.ts';
import type { Commitment, CommitmentRequest, CommitmentState } from '../../protocol/starting/commitments.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { table } from '../text.ts';
import { membersGiven, text, wholeNumber } from '../values.ts';
import { type NamedThings, removal, showing, turning } from './named-things.ts';
import { OBSERVATION_FLAGS, observationGiven } from './observations.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const STATES: readonly CommitmentState[] = ['armed', 'fired', 'failed', 'off'];
const EVERY_SEC = 60;
const COMMITMENTS: NamedThings = { group: 'commitments', takes: '<commitmentId>', exampleId: 'cmt-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Commitments, newest first',
  flags: { '--state <state>': `one of ${STATES.join(', ')}`, ...PAGE_FLAGS },
  example: 'commitments list --state armed',
  async run(context, { options }) {
    const state = text(options.state) as CommitmentState | undefined;
    if (state && !STATES.includes(state)) {
      throw new UsageError(`--state is one of ${STATES.join(', ')}.`);
    }
    const page = await (await context.client()).listCommitments({ ...defined({ state }), ...pageQuery(options) });
    const row = ({ id, state: its, condition, workflowId, nextCheckAt, runId }: Commitment) => [
      id,
      its,
      condition,
      workflowId,
      nextCheckAt ?? '',
      runId ?? '',
    ];
    const columns = ['COMMITMENT', 'STATE', 'CONDITION', 'STARTS', 'NEXT', 'RUN'];
    context.show(
      page,
      () => [...table(columns, page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = showing(COMMITMENTS, 'A commitment, with what came of it', (client, id) => client.getCommitment(id));

const create: CommandSpec = {
  name: 'create',
  takes: '<workflowId>',
  summary: 'Have a workflow run once a time has come or something has become true',
  flags: {
    '--memory <ref>': 'the memory that it came from',
    '--intention <text>': 'what is meant',
    '--at <time>': 'when, as 2026-12-31T09:00:00Z',
    ...OBSERVATION_FLAGS,
    '--when <expression>': 'CEL over observed: kept once it is true, instead of --at',
    '--every <seconds>': `from one look to the next (${EVERY_SEC}); with --at, again so long after it`,
    '--repeat': 'keep it again each time that it becomes true',
    '--input <json>': 'inputs of the run: a JSON object, @file, or -',
    '--set <name=value...>': 'one input',
  },
  example: 'commitments create follow-up --memory mem://sales --at 2027-01-04T09:00:00Z',
  async run(context, { args: [workflowId = ''], options }) {
    const memoryRef = text(options.memory);
    const when = text(options.when);
    const at = text(options.at);
    if (memoryRef === undefined) throw new UsageError('Give --memory: what it came from.');
    if ((at === undefined) === (when === undefined)) throw new UsageError('Give either --at or --when.');
    const inputs = await membersGiven(context.terminal, options);
    const every = text(options.every);
    const everySec = wholeNumber(every ?? String(EVERY_SEC), '--every');
    const repeats = options.repeat === true ? { repeats: true } : {};
    const request: CommitmentRequest = {
      memoryRef,
      workflowId,
      ...defined({ intention: text(options.intention), at }),
      ...(at !== undefined && every !== undefined ? { everySec } : {}),
      ...(when === undefined ? {} : { predicate: { observe: observationGiven(options), when, everySec, ...repeats } }),
      ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    };
    const commitment = await (await context.client()).createCommitment(request);
    context.show(
      commitment,
      () => [`${commitment.id} is looked at next at ${commitment.nextCheckAt}.`],
      () => [commitment.id],
    );
    return EXIT.done;
  },
};

const remove = removal(COMMITMENTS, 'Remove a commitment; a run that has begun goes on', (client, id) =>
  client.deleteCommitment(id),
);

export const commitments: CommandGroup = {
  name: 'commitments',
  summary: 'Run workflows once something is due',
  commands: [
    list,
    get,
    create,
    turning('pause', COMMITMENTS, 'Keep a commitment without doing anything for it', (client, id) =>
      client.pauseCommitment(id),
    ),
    turning('resume', COMMITMENTS, 'Have a commitment kept once it is due, again', (client, id) =>
      client.resumeCommitment(id),
    ),
    remove,
  ],
};

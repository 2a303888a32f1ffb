import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Client, RefusedError } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import { RUN_STATUSES, type RunStatus } from '../../protocol/running/run-status.ts';
import type { RunSnapshot } from '../../protocol/running/runs.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { withWorkflow } from '../nearest-workflow.ts';
import { forkText, runLines, runReport } from '../run-report.ts';
import { paintStatus, propertyLines, sanitize, table } from '../text.ts';
import { inputsOf, listOption, parseInteger, parseJsonObject, stringOption, UNDECLARED_FLAG } from '../values.ts';
import { reportStarted, WATCH_FLAGS } from '../watch-run.ts';
import { artifacts } from './artifacts.ts';
import { diff } from './diff.ts';
import { events } from './events.ts';
import { annotate, annotations } from './feedback.ts';
import { fork, retry } from './forks.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

const start: CommandSpec = {
  name: 'start',
  takes: '<workflowId>',
  summary: 'Start a run of a workflow',
  flags: {
    '--input <json>': 'inputs: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input, read by its declared type',
    ...UNDECLARED_FLAG,
    '--tag <tag...>': 'a tag to find the run by',
    '--configurable <json>': 'options of the run',
    '--idempotency-key <key>': 'a repeated start with the same key returns the same run',
    ...WATCH_FLAGS,
  },
  example: `runs start support-triage --set subject='I cannot log in' --set plan=pro --follow`,
  async run(context, { args: [workflowId = ''], options }) {
    const client = await context.client();
    const { tag, configurable, idempotencyKey } = options;
    const body = {
      workflowId,
      ...(await inputsOf(context, options, () => workflowId)),
      ...(tag ? { tags: [...listOption(tag)] } : {}),
      ...(configurable
        ? { configurable: await parseJsonObject(context.terminal, String(configurable), '--configurable') }
        : {}),
    };
    const call = idempotencyKey ? { idempotencyKey: String(idempotencyKey) } : {};
    const started = await withWorkflow(client, workflowId, () => client.createRun(body, call));
    return reportStarted(context, client, started, options);
  },
};

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List and search runs, newest first',
  flags: {
    '--status <status>': `one of ${RUN_STATUSES.join(', ')}`,
    '--workflow <id>': 'runs of this workflow',
    '--tag <tag>': 'runs with this tag',
    '--flagged': 'runs with a feedback flag',
    '--since <time>': 'started at this time or later, for example 2026-01-31T12:00:00Z',
    '--until <time>': 'started before this time',
    ...PAGE_FLAGS,
  },
  example: 'runs list --status failed --limit 10',
  async run(context, { options }) {
    const { status, workflow, tag, since, until } = options;
    const filter = defined({
      workflowId: stringOption(workflow),
      tag: stringOption(tag),
      since: stringOption(since),
      until: stringOption(until),
    });
    const page = await (await context.client()).listRuns({
      ...filter,
      ...(status ? { status: statusOf(String(status)) } : {}),
      ...(options.flagged ? { flagged: true } : {}),
      ...pageQuery(options),
    });
    const row = (run: (typeof page.items)[number]) => [
      run.runId,
      run.status,
      run.workflowId,
      run.createdAt,
      run.errorCode,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['RUN', 'STATUS', 'WORKFLOW', 'CREATED', 'ERROR'],
          page.items.map(row),
          'No runs. Start one with: capstan runs start <workflowId>',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ runId }) => runId),
    );
    return EXIT.done;
  },
};

function statusOf(status: string): RunStatus {
  const found = RUN_STATUSES.find((known) => known === status);
  if (found) return found;
  throw new UsageError(`Unknown status ${sanitize(status)}. --status must be one of ${RUN_STATUSES.join(', ')}.`);
}

const get: CommandSpec = {
  name: 'get',
  takes: '<runId>',
  summary: 'Show the outcome and the state of a run',
  example: 'runs get run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''] }) {
    const client = await context.client();
    const run = await client.getRun(runId);
    const lines = context.isJson || context.isQuiet ? [] : await runReport(context, client, run);
    context.show(
      run,
      () => lines,
      () => [run.status],
    );
    return EXIT.done;
  },
};

const cancel: CommandSpec = {
  name: 'cancel',
  takes: '<runIds...>',
  summary: 'Cancel runs and their child runs',
  flags: { '--reason <text>': 'stored in the event log' },
  example: 'runs cancel run-0mw4x2c1h0001 --reason "wrong inputs"',
  async run(context, { args: runIds, options }) {
    const client = await context.client();
    const reason = defined({ reason: stringOption(options.reason) });
    const [runId = '', ...others] = runIds;
    if (others.length === 0) {
      const cancelled = await client.cancelRun(runId, reason);
      context.show(cancelled, () => [`${runId} ${paintStatus(context.paint, cancelled.status)}`]);
      return EXIT.done;
    }
    const reply = await client.bulkCancelRuns({ runIds: [...runIds], ...reason });
    context.show(reply, () =>
      reply.results.map((result) => `${result.runId} ${result.ok ? result.status : result.error.message}`),
    );
    return reply.results.every(({ ok }) => ok) ? EXIT.done : EXIT.refused;
  },
};

const pause: CommandSpec = {
  name: 'pause',
  takes: '<runId>',
  summary: 'Pause a run after the running nodes have finished',
  flags: { '--immediate': 'do not wait for the running nodes', '--reason <text>': 'stored in the event log' },
  example: 'runs pause run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''], options }) {
    const paused = await (await context.client()).pauseRun(runId, {
      ...defined({ reason: stringOption(options.reason) }),
      drainPolicy: options.immediate ? 'immediate' : 'drain-current-node',
    });
    context.show(paused, () => [`Pausing ${runId}. Resume it with: capstan runs resume ${runId}`]);
    return EXIT.done;
  },
};

const resume: CommandSpec = {
  name: 'resume',
  takes: '<runId>',
  summary: 'Resume a paused run',
  flags: { '--reason <text>': 'stored in the event log' },
  example: 'runs resume run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''], options }) {
    const resumed = await (await context.client()).resumeRun(runId, defined({ reason: stringOption(options.reason) }));
    context.show(resumed, () => [`Resumed ${runId}.`]);
    return EXIT.done;
  },
};

const state: CommandSpec = {
  name: 'state',
  takes: '<runId>',
  summary: 'Show the state of a run after an event',
  flags: { '--sequence <number>': 'sequence of the last event to include' },
  example: 'runs state run-0mw4x2c1h0001 --sequence 4',
  async run(context, { args: [runId = ''], options }) {
    if (!options.sequence)
      throw new UsageError('--sequence is required, for example --sequence 4. `capstan events` lists the sequences.');
    const sequence = parseInteger(String(options.sequence), '--sequence');
    const run = await (await context.client()).getRunState(runId, { sequence });
    context.show(run, () => runLines(context, run));
    return EXIT.done;
  },
};

const bundle: CommandSpec = {
  name: 'bundle',
  aliases: ['debug-bundle'],
  takes: '<runId>',
  summary: 'Create a debug bundle of a run that is safe to share',
  flags: { '--output <file>': 'write to this file', '--max-events <number>': 'limit of events in the bundle' },
  example: 'runs bundle run-0mw4x2c1h0001 --output bundle.json',
  async run(context, { args: [runId = ''], options }) {
    const { maxEvents, output } = options;
    const query = maxEvents ? { maxEvents: parseInteger(String(maxEvents), '--max-events') } : {};
    const found = await (await context.client()).getDebugBundle(runId, query);
    if (output) await save(String(output), [JSON.stringify(found)]);
    context.show(output ? undefined : found, () =>
      output
        ? [`Wrote ${output}.`]
        : [
            ...propertyLines({ ...found.metrics, spans: found.spans.length, truncated: found.truncated }),
            'Use --output to write the bundle to a file.',
          ],
    );
    return EXIT.done;
  },
};

async function save(path: string, pieces: Iterable<string>): Promise<void> {
  await pipeline(Readable.from(pieces), createWriteStream(path));
}

const ancestry: CommandSpec = {
  name: 'ancestry',
  takes: '<runId>',
  summary: 'Show where a run comes from: the run that started it, or those that it was forked from',
  example: 'runs ancestry run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''] }) {
    const client = await context.client();
    const found = await client.getRunAncestry(runId);
    const { parent } = found;
    const forks = context.isJson || context.isQuiet ? [] : await forkLines(client, runId);
    const none = forks.length === 0 ? [`${runId} has no parent run and is no fork.`] : [];
    context.show(found, () => [
      ...forks,
      ...(parent ? [`${runId} was started by ${parent.runId} (${parent.cause})`] : none),
    ]);
    return EXIT.done;
  },
};

/** Forks of forks that are followed at most. */
const ANCESTORS_MAX = 20;

/** What a run was forked from, and that in turn, as far as it still exists. */
async function forkLines(client: Client, runId: string): Promise<string[]> {
  const lines: string[] = [];
  for (let id: string | undefined = runId; id !== undefined && lines.length < ANCESTORS_MAX; ) {
    const run: RunSnapshot | undefined = await client.getRun(id).catch(ifGone);
    const text = run && forkText(run);
    if (text !== undefined) lines.push(`${id} is a ${text}`);
    id = run?.forkedFrom?.runId;
  }
  return lines;
}

/** A source may have been deleted since, or belong to what the caller may not see. */
function ifGone(error: unknown): undefined {
  if (!(error instanceof RefusedError) || ![404, 410].includes(error.status)) throw error;
}

/** `capstan runs`. */
export const runs: CommandGroup = {
  name: 'runs',
  summary: 'Start, list and control runs',
  commands: [
    start,
    list,
    get,
    cancel,
    pause,
    resume,
    fork,
    retry,
    diff,
    state,
    bundle,
    artifacts,
    ancestry,
    events,
    annotate,
    annotations,
  ],
};

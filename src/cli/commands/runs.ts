import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Client } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import { RUN_STATUSES, type RunStatus } from '../../protocol/running/run-status.ts';
import type { CommandGroup, CommandInput, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { withWorkflow } from '../nearest-workflow.ts';
import { runLines, runReport } from '../run-report.ts';
import { paintStatus, propertyLines, sanitize, table } from '../text.ts';
import { inputsFromOptions, listOption, parseInteger, parseJsonObject, stringOption } from '../values.ts';
import { WATCH_FLAGS, watchRun } from '../watch-run.ts';
import { artifacts } from './artifacts.ts';
import { diff } from './diff.ts';
import { events } from './events.ts';
import { annotate, annotations } from './feedback.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

const start: CommandSpec = {
  name: 'start',
  takes: '<workflowId>',
  summary: 'Start a run of a workflow',
  flags: {
    '--input <json>': 'inputs: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input, read by its declared type',
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

/** Leaves `inputs` out when none are given, because an empty object would override the inputs of a forked run. */
async function inputsOf(
  context: Context,
  options: CommandInput['options'],
  workflowOf: () => string | Promise<string>,
) {
  const inputs = await inputsFromOptions(context, options, workflowOf);
  return Object.keys(inputs).length > 0 || options.input !== undefined ? { inputs } : {};
}

/** Prints the id of a started run, then waits for or follows it if asked to. */
async function reportStarted(
  context: Context,
  client: Client,
  run: { readonly runId: string },
  options: CommandInput['options'],
): Promise<ExitCode> {
  const { runId } = run;
  if (!options.wait && !options.follow) {
    context.show(
      run,
      () => [runId, `Follow it with: capstan events ${runId} --follow`],
      () => [runId],
    );
    return EXIT.done;
  }
  context.note(runId);
  return watchRun(context, client, runId, options);
}

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
      () => [...table(['RUN', 'STATUS', 'WORKFLOW', 'CREATED', 'ERROR'], page.items.map(row)), ...nextPageHint(page)],
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
  summary: 'Show what came out of a run, and its state',
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

const fork: CommandSpec = {
  name: 'fork',
  takes: '<runId>',
  summary: 'Start a run from the history of another: branch or replay',
  flags: {
    '--mode <mode>': 'branch (the default), or replay',
    '--from <sequence>': 'sequence of the first event to execute again (default: 0)',
    '--input <json>': 'inputs that a branch overrides: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input that a branch overrides',
    ...WATCH_FLAGS,
  },
  example: 'runs fork run-0mw4x2c1h0001 --from 6 --set plan=free --follow',
  async run(context, { args: [runId = ''], options }) {
    const { mode = 'branch', from } = options;
    if (mode !== 'branch' && mode !== 'replay') throw new UsageError('--mode must be branch or replay.');
    const client = await context.client();
    const overlay = await inputsOf(context, options, async () => (await client.getRun(runId)).workflowId);
    const forked = await client.forkRun(runId, {
      mode,
      fromSeq: from === undefined ? 0 : parseInteger(String(from), '--from'),
      ...(Object.keys(overlay).length > 0 ? { runOptionsOverlay: overlay } : {}),
    });
    return reportStarted(context, client, forked, options);
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
  summary: 'Show the parent of a run',
  example: 'runs ancestry run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''] }) {
    const found = await (await context.client()).getRunAncestry(runId);
    const { parent } = found;
    context.show(found, () => [
      parent ? `${runId} was started by ${parent.runId} (${parent.cause})` : `${runId} has no parent run.`,
    ]);
    return EXIT.done;
  },
};

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

import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Client } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import { RUN_STATUSES, type RunStatus } from '../../protocol/running/run-status.ts';
import type { CommandGroup, CommandSpec, Context, Given } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { facts, harmless, paintStatus, table } from '../text.ts';
import { jsonObject, membersGiven, text, texts, wholeNumber } from '../values.ts';
import { runLines, WATCH_FLAGS, watchRun } from '../watch-run.ts';
import { events } from './events.ts';
import { annotate, annotations } from './feedback.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const start: CommandSpec = {
  name: 'start',
  takes: '<workflowId>',
  summary: 'Start a run of a workflow',
  flags: {
    '--input <json>': 'inputs as a JSON object, as @file, or - for what is piped in',
    '--set <name=value...>': 'one input',
    '--tag <tag...>': 'a label to find the run by',
    '--configurable <json>': 'options of the run',
    '--idempotency-key <key>': 'starting twice with the same key starts one run',
    ...WATCH_FLAGS,
  },
  example: `runs start support-triage --set subject='I cannot log in' --set plan=pro --follow`,
  async run(context, { args: [workflowId = ''], options }) {
    const client = await context.client();
    const { tag, configurable, idempotencyKey } = options;
    const body = {
      workflowId,
      ...(await inputsOf(context, options)),
      ...(tag ? { tags: [...texts(tag)] } : {}),
      ...(configurable
        ? { configurable: await jsonObject(context.terminal, String(configurable), '--configurable') }
        : {}),
    };
    const call = idempotencyKey ? { idempotencyKey: String(idempotencyKey) } : {};
    const started = await client.createRun(body, call);
    return begun(context, client, started, options);
  },
};

/** Empty where no inputs are given, so that what there is without them stays as it is. */
async function inputsOf({ terminal }: Context, options: Given['options']) {
  const inputs = await membersGiven(terminal, options);
  return Object.keys(inputs).length > 0 || options.input !== undefined ? { inputs } : {};
}

/** Says which run was begun, and stays with it where that is wanted. */
async function begun(
  context: Context,
  client: Client,
  run: { readonly runId: string },
  options: Given['options'],
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
    '--tag <tag>': 'runs with this label',
    '--flagged': 'runs that somebody flagged',
    '--since <time>': 'started at this time or later, as 2026-01-31T12:00:00Z',
    '--until <time>': 'started before this time',
    ...PAGE_FLAGS,
  },
  example: 'runs list --status failed --limit 10',
  async run(context, { options }) {
    const { status, workflow, tag, since, until } = options;
    const filter = defined({ workflowId: text(workflow), tag: text(tag), since: text(since), until: text(until) });
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
      () => [...table(['RUN', 'STATUS', 'WORKFLOW', 'CREATED', 'ERROR'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ runId }) => runId),
    );
    return EXIT.done;
  },
};

function statusOf(status: string): RunStatus {
  const found = RUN_STATUSES.find((known) => known === status);
  if (found) return found;
  throw new UsageError(`There is no status ${harmless(status)}. There are: ${RUN_STATUSES.join(', ')}.`);
}

const get: CommandSpec = {
  name: 'get',
  takes: '<runId>',
  summary: 'A run as it is now',
  example: 'runs get run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''] }) {
    const run = await (await context.client()).getRun(runId);
    context.show(
      run,
      () => runLines(context, run),
      () => [run.status],
    );
    return EXIT.done;
  },
};

const cancel: CommandSpec = {
  name: 'cancel',
  takes: '<runIds...>',
  summary: 'Cancel runs, and the runs they started',
  flags: { '--reason <text>': 'kept in the log' },
  example: 'runs cancel run-0mw4x2c1h0001 --reason "wrong inputs"',
  async run(context, { args: runIds, options }) {
    const client = await context.client();
    const reason = defined({ reason: text(options.reason) });
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
  summary: 'Pause a run once the nodes in flight are done',
  flags: { '--immediate': 'do not wait for the nodes in flight', '--reason <text>': 'kept in the log' },
  example: 'runs pause run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''], options }) {
    const paused = await (await context.client()).pauseRun(runId, {
      ...defined({ reason: text(options.reason) }),
      drainPolicy: options.immediate ? 'immediate' : 'drain-current-node',
    });
    context.show(paused, () => [`${runId} is pausing. Let it go on with: capstan runs resume ${runId}`]);
    return EXIT.done;
  },
};

const resume: CommandSpec = {
  name: 'resume',
  takes: '<runId>',
  summary: 'Let a paused run go on',
  flags: { '--reason <text>': 'kept in the log' },
  example: 'runs resume run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''], options }) {
    const resumed = await (await context.client()).resumeRun(runId, defined({ reason: text(options.reason) }));
    context.show(resumed, () => [`${runId} goes on.`]);
    return EXIT.done;
  },
};

const fork: CommandSpec = {
  name: 'fork',
  takes: '<runId>',
  summary: 'Begin a run with the history of another: branch off, or replay it',
  flags: {
    '--mode <mode>': 'branch (the default), or replay',
    '--from <sequence>': 'the first event that happens anew; 0 where it is not said',
    '--input <json>': 'other inputs for a branch: a JSON object, @file, or -',
    '--set <name=value...>': 'one other input for a branch',
    ...WATCH_FLAGS,
  },
  example: 'runs fork run-0mw4x2c1h0001 --from 6 --set plan=free --follow',
  async run(context, { args: [runId = ''], options }) {
    const { mode = 'branch', from } = options;
    if (mode !== 'branch' && mode !== 'replay') throw new UsageError('--mode is branch or replay.');
    const overlay = await inputsOf(context, options);
    const client = await context.client();
    const forked = await client.forkRun(runId, {
      mode,
      fromSeq: from === undefined ? 0 : wholeNumber(String(from), '--from'),
      ...(Object.keys(overlay).length > 0 ? { runOptionsOverlay: overlay } : {}),
    });
    return begun(context, client, forked, options);
  },
};

const diff: CommandSpec = {
  name: 'diff',
  takes: '<runId> <otherRunId>',
  summary: 'How another run differs from this one',
  example: 'runs diff run-0mw4x2c1h0001 run-0mw4x2c1h0002',
  async run(context, { args: [runId = '', against = ''] }) {
    const found = await (await context.client()).diffRun(runId, { against });
    context.show(found, () => [
      found.divergedAtSeq === null ? 'The logs are the same.' : `The logs differ from event ${found.divergedAtSeq} on.`,
      ...found.eventDiffs.map(({ seq, op, aEvent, bEvent }) =>
        harmless(
          `${{ added: '+', removed: '-', changed: '~' }[op]} ${seq}  ${aEvent?.type ?? ''}${bEvent && aEvent ? ' -> ' : ''}${bEvent?.type ?? ''}`,
        ),
      ),
      ...facts(found.stateDiff).map(harmless),
      ...(found.truncated ? ['There is more: a run is still going on, or there is too much to show.'] : []),
    ]);
    return EXIT.done;
  },
};

const state: CommandSpec = {
  name: 'state',
  takes: '<runId>',
  summary: 'A run as it was after an event',
  flags: { '--sequence <number>': 'sequence of the last event that counts' },
  example: 'runs state run-0mw4x2c1h0001 --sequence 4',
  async run(context, { args: [runId = ''], options }) {
    if (!options.sequence) throw new UsageError('Say after which event, as --sequence 4. `capstan events` lists them.');
    const sequence = wholeNumber(String(options.sequence), '--sequence');
    const run = await (await context.client()).getRunState(runId, { sequence });
    context.show(run, () => runLines(context, run));
    return EXIT.done;
  },
};

const bundle: CommandSpec = {
  name: 'bundle',
  aliases: ['debug-bundle'],
  takes: '<runId>',
  summary: 'Everything that helps to find out what went wrong with a run, fit to be handed on',
  flags: { '--output <file>': 'write it there', '--max-events <number>': 'no more events than this' },
  example: 'runs bundle run-0mw4x2c1h0001 --output bundle.json',
  async run(context, { args: [runId = ''], options }) {
    const { maxEvents, output } = options;
    const query = maxEvents ? { maxEvents: wholeNumber(String(maxEvents), '--max-events') } : {};
    const found = await (await context.client()).getDebugBundle(runId, query);
    if (output) await save(String(output), [JSON.stringify(found)]);
    context.show(output ? undefined : found, () =>
      output
        ? [`Written to ${output}.`]
        : [
            ...facts({ ...found.metrics, spans: found.spans.length, truncated: found.truncated }),
            'Give --output to keep it.',
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
  summary: 'The run that started this one, if one did',
  example: 'runs ancestry run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''] }) {
    const found = await (await context.client()).getRunAncestry(runId);
    const { parent } = found;
    context.show(found, () => [
      parent ? `${runId} was started by ${parent.runId} (${parent.cause})` : 'No run started it.',
    ]);
    return EXIT.done;
  },
};

export const runs: CommandGroup = {
  name: 'runs',
  summary: 'Start runs and look after them',
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
    ancestry,
    events,
    annotate,
    annotations,
  ],
};

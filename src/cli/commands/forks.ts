import type { Client, RunEvent } from '../../client/index.ts';
import type { CommandInput, CommandSpec, Context } from '../command.ts';
import { type ExitCode, UsageError } from '../exit.ts';
import { failedNode, repeatedEffects, startOf } from '../fork-point.ts';
import { orNone } from '../or-none.ts';
import { eventsOf } from '../run-report.ts';
import { sanitize } from '../text.ts';
import { inputsOf, UNDECLARED_FLAG } from '../values.ts';
import { reportStarted, WATCH_FLAGS } from '../watch-run.ts';

const INPUT_FLAGS: Readonly<Record<string, string>> = {
  '--input <json>': 'inputs that a branch overrides: a JSON object, @file, or - for standard input',
  '--set <name=value...>': 'one input that a branch overrides',
  ...UNDECLARED_FLAG,
};

/** `capstan runs fork`. */
export const fork: CommandSpec = {
  name: 'fork',
  takes: '<runId>',
  summary: 'Start a run from the history of another: branch or replay',
  flags: {
    '--mode <mode>': 'branch (the default), or replay',
    '--from <node>': 'node to start again, or the sequence of the first event to execute again (default: 0)',
    ...INPUT_FLAGS,
    ...WATCH_FLAGS,
  },
  example: 'runs fork run-0mw4x2c1h0001 --from classify --set plan=free --follow',
  async run(context, { args: [runId = ''], options }) {
    const { mode = 'branch', from = '0' } = options;
    if (mode !== 'branch' && mode !== 'replay') throw new UsageError('--mode must be branch or replay.');
    const client = await context.client();
    const isSequence = /^\d{1,15}$/.test(String(from));
    const events = isSequence && mode === 'replay' ? [] : await eventsOf(client, runId);
    const fromSeq = isSequence ? Number(from) : startOf(events, String(from));
    return startFork(context, { client, runId, mode, fromSeq, events, options });
  },
};

/** `capstan runs retry`. */
export const retry: CommandSpec = {
  name: 'retry',
  takes: '<runId>',
  summary: 'Retry a failed run: start a branch from the failed node',
  flags: { ...INPUT_FLAGS, ...WATCH_FLAGS },
  example: 'runs retry run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''], options }) {
    const client = await context.client();
    const { status } = await client.getRun(runId);
    const events = await eventsOf(client, runId);
    const nodeId = failedNode(events);
    if (nodeId === undefined) {
      const why = status === 'failed' ? 'failed, but not at a node' : `has not failed; its status is ${status}`;
      throw new UsageError(`${runId} ${why}. Choose where to continue: capstan runs fork ${runId} --from <node>.`);
    }
    context.note(sanitize(`Continuing from the node ${nodeId}.`));
    return startFork(context, { client, runId, mode: 'branch', fromSeq: startOf(events, nodeId), events, options });
  },
};

/** What a fork is made from. */
interface Fork {
  readonly client: Client;
  readonly runId: string;
  readonly mode: 'branch' | 'replay';
  readonly fromSeq: number;
  /** The log of the source. */
  readonly events: readonly RunEvent[];
  readonly options: CommandInput['options'];
}

async function startFork(context: Context, fork: Fork): Promise<ExitCode> {
  const { client, runId, mode, fromSeq, options } = fork;
  const overlay = await inputsOf(context, options, async () => (await client.getRun(runId)).workflowId);
  if (mode === 'branch') await noteEffects(context, fork);
  const body = { mode, fromSeq, ...(Object.keys(overlay).length > 0 ? { runOptionsOverlay: overlay } : {}) };
  return reportStarted(context, client, await client.forkRun(runId, body), options);
}

/** Says which effects a branch repeats; a host or a key that cannot tell changes nothing about the fork. */
async function noteEffects({ note, paint }: Context, { client, runId, fromSeq, events }: Fork): Promise<void> {
  const found = await orNone(Promise.all([client.getRunWorkflow(runId), client.listNodeTypes()]));
  if (!found) return;
  const [definition, { items }] = found;
  const nodes = repeatedEffects(events, fromSeq, definition, items);
  if (nodes.length > 0) note(paint('yellow', sanitize(`Nodes with effects that run again: ${nodes.join(', ')}.`)));
}

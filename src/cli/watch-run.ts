import type { Client, RunEvent } from '../client/index.ts';
import { isObject } from '../protocol/format/json.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import type { Context } from './command.ts';
import { type ExitCode, exitOfRun } from './exit.ts';
import { Progress } from './progress.ts';
import { Interrupted } from './terminal.ts';
import { type Colour, columns, paintStatus, propertyLines, sanitize } from './text.ts';

/** The flags of commands that start a run and can stay with it. */
export const WATCH_FLAGS: Readonly<Record<string, string>> = {
  '--wait': 'wait until the run has ended, or is waiting for a person',
  '--follow': 'print events until the run has ended',
};

/** Waits for a run or follows its events, as the flags say; the exit code is the outcome of the run. */
export async function watchRun(
  context: Context,
  client: Client,
  runId: string,
  options: { readonly wait?: unknown; readonly follow?: unknown },
): Promise<ExitCode> {
  if (options.follow) return followRun(context, client, runId, {});
  const progress = new Progress(context);
  try {
    const snapshot = await client.waitForRun(runId, { until: isWaiting, signal: context.terminal.interrupted() });
    progress.end();
    context.show(snapshot, () => runLines(context, snapshot));
    return exitOfRun(snapshot.status);
  } finally {
    progress.end();
  }
}

/** Prints the events of a run until it ends. Ctrl-C stops watching and leaves the run alone. */
export async function followRun(
  context: Context,
  client: Client,
  runId: string,
  { after, mode }: { readonly after?: number | undefined; readonly mode?: 'updates' | 'debug' | undefined },
): Promise<ExitCode> {
  const signal = context.terminal.interrupted();
  const progress = new Progress(context);
  // The progress line needs node events, which only the debug mode has.
  const streamMode = mode ?? (progress.isShown ? 'debug' : 'updates');
  try {
    for await (const event of client.followRun(runId, { after, streamMode, signal })) {
      progress.record(event);
      progress.printAbove(() => showEvent(context, event));
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    progress.end();
    context.note(`Stopped watching; the run continues. Follow it again with: capstan events ${runId} --follow`);
  } finally {
    progress.end();
  }
  // The host may be restarting. Unlike getRun, waitForRun retries for as long as following does.
  const { status, error } = await client.waitForRun(runId, { until: () => true });
  const reason = error ? `: ${sanitize(error.message)} (${error.code})` : '';
  context.note(`${runId} ${paintStatus(context.paint, status)}${reason}`);
  return exitOfRun(status);
}

function showEvent(context: Context, event: RunEvent): void {
  context.show(event, () => eventLines(context, event));
  if (event.type === 'interrupt.requested')
    context.note(`The run is waiting for an answer. See: capstan approvals get ${event.runId}`);
}

function isWaiting({ status }: RunSnapshot): boolean {
  return status === 'paused' || status.startsWith('waiting-');
}

/** Formats a run snapshot: status, properties and the state of each node. */
export function runLines({ paint }: Context, run: RunSnapshot): string[] {
  const { runId, workflowId, workflowVersion, status, createdAt, startedAt, endedAt, error, interrupt } = run;
  const nodes = Object.entries(run.nodeStates ?? {});
  const variables = Object.keys(run.variables ?? {}).length > 0 ? run.variables : undefined;
  return [
    paintStatus(paint, status),
    ...propertyLines({
      run: runId,
      workflow: `${workflowId} (version ${workflowVersion ?? '?'})`,
      created: createdAt,
      started: startedAt,
      ended: endedAt,
      error: error && `${error.message} (${error.code})`,
      asks: interrupt && `${interrupt.kind} at ${interrupt.nodeId}; see capstan approvals get ${runId}`,
      variables,
    }),
    ...(nodes.length > 0 ? ['', ...columns(nodes.map(([id, state]) => [id, state.status, errorOf(state)]))] : []),
  ];
}

const EVENT_COLOURS: readonly [RegExp, Colour][] = [
  [/\.(failed|breached|diverged)$/, 'red'],
  [/\.completed$/, 'green'],
  [/^(interrupt|approval|clarification)\.|\.(suspended|paused)$/, 'yellow'],
];

/** Formats an event as one line: time, sequence, type, node and error. */
export function eventLines({ paint }: Context, { sequence, type, nodeId, timestamp, payload }: RunEvent): string[] {
  const colour = EVENT_COLOURS.find(([pattern]) => pattern.test(type))?.[1];
  const paddedType = type.padEnd(24);
  const subject = nodeId ?? (isObject(payload) && typeof payload.workflowId === 'string' ? payload.workflowId : '');
  const line = [
    paint('grey', timestamp.slice(11, 23)),
    String(sequence).padStart(4),
    colour ? paint(colour, paddedType) : paddedType,
    sanitize(subject),
    errorOf(payload),
  ];
  return [line.join('  ').trimEnd()];
}

function errorOf(payload: unknown): string {
  const error = isObject(payload) ? payload.error : undefined;
  return isObject(error) ? sanitize(`${error.message} (${error.code})`) : '';
}

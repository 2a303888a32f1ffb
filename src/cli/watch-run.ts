import type { Client, EventPayload, RunEvent } from '../client/index.ts';
import { valueAt } from '../protocol/format/json.ts';
import { isTerminalStatus } from '../protocol/running/run-status.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import type { Context } from './command.ts';
import { eventDetail } from './event-details.ts';
import { EXIT, type ExitCode, exitOfRun } from './exit.ts';
import { PrincipalNames } from './principal-names.ts';
import { Progress } from './progress.ts';
import { runReport } from './run-report.ts';
import { Interrupted } from './terminal.ts';
import { type Colour, errorText, paintStatus, sanitize } from './text.ts';

/** The flags of commands that start a run and can stay with it. */
export const WATCH_FLAGS: Readonly<Record<string, string>> = {
  '--wait': 'wait until the run has ended, or is waiting for a person',
  '--follow': 'print events until the run has ended',
};

/** Prints the id of a started run, then waits for or follows it if asked to. */
export async function reportStarted(
  context: Context,
  client: Client,
  run: { readonly runId: string },
  options: { readonly wait?: unknown; readonly follow?: unknown },
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

/** Waits for a run or follows its events, as the flags say; the exit code is the outcome of the run. */
async function watchRun(
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
    const lines = context.isJson || context.isQuiet ? [] : await runReport(context, client, snapshot);
    context.show(
      snapshot,
      () => lines,
      () => [`${runId} ${snapshot.status}`],
    );
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
  const printer = new EventPrinter(context, new PrincipalNames(context, client));
  const questions = new OpenQuestions(client, runId);
  // Retries and log lines are only in the debug mode. Scripts that read JSON get the updates that they know.
  const streamMode = mode ?? (context.isJson ? 'updates' : 'debug');
  try {
    for await (const event of client.followRun(runId, { after, streamMode, signal })) {
      progress.record(event);
      const lines = await printer.linesOf(event);
      progress.printAbove(() => printer.print(event, lines));
      if (await questions.isOpen(event)) progress.printAbove(() => printer.hint(runId));
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    printer.endText();
    progress.end();
    context.note(`Stopped watching; the run continues. Follow it again with: capstan events ${runId} --follow`);
  } finally {
    progress.end();
  }
  // The host may be restarting. Unlike getRun, waitForRun retries for as long as following does.
  const run = await client.waitForRun(runId, { until: () => true });
  const reason = run.error ? `: ${errorText(run.error)}` : '';
  if (!context.isJson && !context.isQuiet) {
    const lines = await runReport(context, client, run);
    context.show(undefined, () => ['', ...lines]);
  }
  context.note(`${runId} ${paintStatus(context.paint, run.status)}${reason}`);
  return exitOfRun(run.status);
}

/** Knows whether a run still waits for the answer that an event asks for: a log begins with what was answered long ago. */
class OpenQuestions {
  readonly #client: Client;
  readonly #runId: string;
  #hasEnded = false;

  constructor(client: Client, runId: string) {
    this.#client = client;
    this.#runId = runId;
  }

  async isOpen({ type, nodeId = '' }: RunEvent): Promise<boolean> {
    if (type !== 'interrupt.requested' || this.#hasEnded) return false;
    const { status, nodeStates } = await this.#client.waitForRun(this.#runId, { until: () => true });
    this.#hasEnded = isTerminalStatus(status);
    return nodeStates?.[nodeId]?.status === 'suspended';
  }
}

/** Prints events as lines, and the pieces of what a model writes as one text that grows. */
class EventPrinter {
  readonly #context: Context;
  readonly #names: PrincipalNames;
  /** The node whose text the cursor stands behind. */
  #writing: string | undefined;

  constructor(context: Context, names: PrincipalNames) {
    this.#context = context;
    this.#names = names;
  }

  /** What is printed of an event for people. */
  async linesOf(event: RunEvent): Promise<string[]> {
    return eventLines(this.#context, await this.#names.in(event));
  }

  /** Prints one event; returns true while a text is incomplete, so that nothing may be drawn over it. */
  print(event: RunEvent, lines: readonly string[]): boolean {
    const { isJson, isQuiet } = this.#context;
    if (event.type === 'output.chunk' && !isJson && !isQuiet) {
      this.#write(event.payload);
    } else {
      this.endText();
      this.#context.show(event, () => lines);
    }
    return this.#writing !== undefined;
  }

  /** Says where the interrupt that was printed last is answered. */
  hint(runId: string): boolean {
    this.#context.note(`The run is waiting for an answer. See: capstan approvals get ${runId}`);
    return false;
  }

  /** Ends the line of an incomplete text. */
  endText(): void {
    if (this.#writing !== undefined) this.#context.terminal.out('\n');
    this.#writing = undefined;
  }

  #write({ nodeId, chunk, isLast }: EventPayload<'output.chunk'>): void {
    const { terminal, paint } = this.#context;
    if (this.#writing !== nodeId) {
      this.endText();
      terminal.out(`${paint('grey', `${sanitize(nodeId)} writes:`)} `);
      this.#writing = nodeId;
    }
    terminal.out(chunk.split('\n').map(sanitize).join('\n'));
    if (isLast) this.endText();
  }
}

function isWaiting({ status }: RunSnapshot): boolean {
  return status === 'paused' || status.startsWith('waiting-');
}

const EVENT_COLOURS: readonly [RegExp, Colour][] = [
  [/\.(failed|breached|diverged|exhausted)$/, 'red'],
  [/\.completed$/, 'green'],
  [/^(interrupt|approval|clarification)\.|\.(suspended|paused|retried)$/, 'yellow'],
];
const LEVEL_COLOURS: Readonly<Record<string, Colour>> = { warn: 'yellow', error: 'red' };

/** Formats an event as one line: time, sequence, type, node, and what else it says. */
export function eventLines({ paint }: Context, event: RunEvent): string[] {
  const { sequence, type, nodeId, timestamp, payload } = event;
  const colour =
    type === 'log.appended' ? LEVEL_COLOURS[payload.level] : EVENT_COLOURS.find(([pattern]) => pattern.test(type))?.[1];
  const paddedType = type.padEnd(24);
  const workflowId = valueAt(payload, 'workflowId');
  const subject = nodeId ?? (typeof workflowId === 'string' ? workflowId : '');
  const line = [
    paint('grey', timestamp.slice(11, 23)),
    String(sequence).padStart(4),
    colour ? paint(colour, paddedType) : paddedType,
    ...[subject, eventDetail(event)].filter((part) => part !== '').map((part) => sanitize(part.replace(/\s+/g, ' '))),
  ];
  return [line.join('  ').trimEnd()];
}

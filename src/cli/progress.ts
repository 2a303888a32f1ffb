import type { RunEvent } from '../client/index.ts';
import { platform } from '../client/machine.ts';
import type { EventTable, EventType } from '../protocol/running/events.ts';
import type { Context } from './command.ts';
import { formatDuration, sanitize } from './text.ts';

const REDRAW_MS = 1_000;
/** Moves to the first column and clears the line. */
const CLEAR_LINE = '\r\x1b[K';

/** What some events say about their node; others do not change the line. */
const CHANGES: Partial<EventTable<'runs' | 'waits' | 'done' | 'asks' | 'answered'>> = {
  'node.started': 'runs',
  'node.resumed': 'runs',
  'node.suspended': 'waits',
  'node.completed': 'done',
  'node.failed': 'done',
  'node.skipped': 'done',
  'node.cancelled': 'done',
  'interrupt.requested': 'asks',
  'interrupt.resolved': 'answered',
};

/**
 * The progress line at the bottom of the terminal: finished nodes, running nodes, open interrupts and elapsed time. It
 * is cleared at the end, and not shown without a terminal or with --json or --quiet.
 */
export class Progress {
  readonly #terminal: Context['terminal'];
  readonly #columns: number | undefined;
  readonly #running = new Set<string>();
  readonly #waiting = new Set<string>();
  readonly #startedAt = platform.now();
  #done: number | undefined;
  #isHidden = false;
  #stopTicking = (): void => {};

  constructor({ terminal, isJson, isQuiet }: Context) {
    this.#terminal = terminal;
    this.#columns = isJson || isQuiet ? undefined : terminal.liveColumns;
    this.#tick();
  }

  /** False when the output is not a terminal, or is for a script. */
  get isShown(): boolean {
    return this.#columns !== undefined;
  }

  /** Updates the counters with one more event. */
  record({ type, nodeId = '' }: RunEvent): void {
    this.#done ??= 0;
    const change = CHANGES[type as EventType];
    if (change === 'runs') this.#running.add(nodeId);
    if (change === 'done') this.#done++;
    if (change === 'done' || change === 'waits') this.#running.delete(nodeId);
    if (change === 'asks') this.#waiting.add(nodeId);
    if (change === 'answered') this.#waiting.delete(nodeId);
  }

  /** Prints lasting output above the progress line. The line is hidden while `print` returns true: a text is growing. */
  printAbove(print: () => boolean): void {
    this.#clear();
    this.#isHidden = print();
    this.#draw();
  }

  /** Clears the line and stops redrawing; may be called twice. */
  end(): void {
    this.#stopTicking();
    this.#clear();
  }

  #tick(): void {
    if (!this.isShown) return;
    this.#draw();
    this.#stopTicking = platform.after(REDRAW_MS, () => this.#tick());
  }

  #draw(): void {
    if (this.#columns === undefined || this.#isHidden) return;
    const parts = [
      this.#done === undefined ? 'waiting' : `${this.#done} done`,
      ...(this.#running.size > 0 ? [`running: ${[...this.#running].join(', ')}`] : []),
      ...(this.#waiting.size > 0 ? [`waiting for an answer: ${[...this.#waiting].join(', ')}`] : []),
      formatDuration(platform.now() - this.#startedAt),
    ];
    this.#terminal.err(CLEAR_LINE + sanitize(parts.join(' · ')).slice(0, this.#columns - 1));
  }

  #clear(): void {
    if (this.isShown && !this.#isHidden) this.#terminal.err(CLEAR_LINE);
  }
}

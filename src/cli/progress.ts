import type { RunEvent } from '../client/index.ts';
import { platform } from '../client/machine.ts';
import type { EventTable, EventType } from '../protocol/running/events.ts';
import type { Context } from './command.ts';
import { duration, harmless } from './text.ts';

const EVERY_MS = 1_000;
const WIPE = '\r\x1b[K';

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
 * The last line of a terminal, which says how far a run is and for how long it has been going on. It is written anew
 * as that changes, and gone at the end. Where nobody looks there is none.
 */
export class Progress {
  readonly #terminal: Context['terminal'];
  readonly #columns: number | undefined;
  readonly #running = new Set<string>();
  readonly #asking = new Set<string>();
  readonly #since = platform.now();
  #done: number | undefined;
  #stopTicking = (): void => {};

  constructor({ terminal, isJson, isQuiet }: Context) {
    this.#terminal = terminal;
    this.#columns = isJson || isQuiet ? undefined : terminal.liveColumns;
    this.#tick();
  }

  get isShown(): boolean {
    return this.#columns !== undefined;
  }

  saw({ type, nodeId = '' }: RunEvent): void {
    this.#done ??= 0;
    const change = CHANGES[type as EventType];
    if (change === 'runs') this.#running.add(nodeId);
    if (change === 'done') this.#done++;
    if (change === 'done' || change === 'waits') this.#running.delete(nodeId);
    if (change === 'asks') this.#asking.add(nodeId);
    if (change === 'answered') this.#asking.delete(nodeId);
  }

  /** Prints what stays, above the line. */
  above(print: () => void): void {
    this.#wipe();
    print();
    this.#draw();
  }

  end(): void {
    this.#stopTicking();
    this.#wipe();
  }

  #tick(): void {
    if (!this.isShown) return;
    this.#draw();
    this.#stopTicking = platform.after(EVERY_MS, () => this.#tick());
  }

  #draw(): void {
    if (this.#columns === undefined) return;
    const parts = [
      this.#done === undefined ? 'waiting' : `${this.#done} done`,
      ...(this.#running.size > 0 ? [`running: ${[...this.#running].join(', ')}`] : []),
      ...(this.#asking.size > 0 ? [`waiting for an answer: ${[...this.#asking].join(', ')}`] : []),
      duration(platform.now() - this.#since),
    ];
    this.#terminal.err(WIPE + harmless(parts.join(' · ')).slice(0, this.#columns - 1));
  }

  #wipe(): void {
    if (this.isShown) this.#terminal.err(WIPE);
  }
}

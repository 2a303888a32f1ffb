import type { NewEvent, RunEvent } from '../protocol/running/events.ts';
import { finishWork, holdLease, type Lease, releaseLease } from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import { sha256Hex } from '../system/digest.ts';
import { announce, appendWrites, type Before, recordNow, whereIs } from './append.ts';
import type { Change } from './change.ts';
import { LeaseLost } from './effects/ledger.ts';
import { traitsOf } from './event-traits.ts';
import type { Recorded } from './recording.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** What becomes of the lease with a commit: it is kept, given back until some time, or no longer needed. */
export type LeaseMove = 'hold' | 'finish' | { readonly releaseUntil: number | null; readonly wakes: number };

interface Recording {
  /** When it happened: now, where this is silent. */
  readonly time?: number;
  /** Committed in the same unit as the events: the child run that an event tells of. */
  readonly change?: Change<unknown>;
}

/**
 * The pen of whoever drives a run: events are recorded in memory, ahead of the store, and written down together.
 *
 * J1. Nobody but the fold sees an event before it is committed.
 * J2. A commit carries the lease and the sequence it builds on, or is refused.
 * J3. After a refusal memory is thrown away: the log says what is true.
 */
export class Journal {
  readonly #runtime: Runtime;
  readonly lease: Lease;
  #held: HeldRun;
  /** Where the run is by what is known to be in the store. */
  #written: Before;
  #pending: Recorded[] = [];
  #changes: Change<unknown>[] = [];
  /** A commit was refused: memory has moved on from something that did not happen. */
  #isStale = false;
  /** Nodes of which something was thrown away. */
  #lost = new Set<string>();

  constructor(runtime: Runtime, lease: Lease, held: HeldRun) {
    this.#runtime = runtime;
    this.lease = lease;
    this.#held = held;
    this.#written = whereIs(held.run);
  }

  get held(): HeldRun {
    return this.#held;
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  /** Whether everything that was recorded is in the store. */
  get isWritten(): boolean {
    return this.#written.sequence === this.#held.run.sequence;
  }

  record(events: readonly NewEvent[], { time = this.#runtime.clock.now(), change }: Recording = {}): RunEvent[] {
    const recorded = events.map((event) => recordNow(this.#held, event, time, sha256Hex));
    this.#pending.push(...recorded);
    if (change) this.#changes.push(change);
    return recorded.map(({ event }) => event);
  }

  /** Writes down what is pending. False when somebody else moved the run or its work in between. */
  async commit(move: LeaseMove): Promise<boolean> {
    const pending = this.#pending;
    const changes = this.#changes;
    if (pending.length === 0 && move === 'hold') return true;
    this.#pending = [];
    this.#changes = [];
    const outcome = await this.#runtime.store.commit([
      ...this.#leaseWrites(move, pending),
      ...this.#eventWrites(pending),
      ...changes.flatMap(({ writes }) => writes),
    ]);
    if (!outcome.committed) {
      this.#lose(pending);
      return this.#refused(outcome.broke, move);
    }
    const before = this.#written;
    this.#written = whereIs(this.#held.run);
    if (pending.length > 0) announce(this.#runtime, this.#held, pending, before);
    for (const tell of changes.flatMap(({ announce }) => announce)) tell();
    return true;
  }

  /**
   * Starts over from the log if somebody else wrote to it, or if a commit of ours was refused. Names the nodes that have
   * said something which is not in the log.
   */
  async catchUp(): Promise<readonly string[]> {
    const { identity, run } = this.#held;
    const row = await this.#runtime.reader.row(identity.subject, run.facts.runId);
    if (!row) throw new LeaseLost('the run is gone');
    if (row.sequence === this.#written.sequence && !this.#isStale) return [];
    this.#lose(this.#pending);
    this.#pending = [];
    this.#changes = [];
    this.#held = await this.#runtime.reader.fresh(row);
    this.#written = whereIs(this.#held.run);
    this.#isStale = false;
    const lost = [...this.#lost];
    this.#lost = new Set();
    return lost;
  }

  #lose(recorded: readonly Recorded[]): void {
    for (const { event } of recorded) if (event.nodeId !== undefined) this.#lost.add(event.nodeId);
  }

  #leaseWrites(move: LeaseMove, pending: readonly Recorded[]): Unit {
    if (move === 'finish') return [finishWork(this.lease)];
    if (move !== 'hold') return [releaseLease(this.lease, move.releaseUntil, move.wakes)];
    return [
      holdLease(
        this.lease,
        pending.some(({ event }) => isProgress(event.type)),
      ),
    ];
  }

  #eventWrites(pending: readonly Recorded[]): Unit {
    if (pending.length === 0) return [];
    const isReplay = this.#held.run.facts.fork?.mode === 'replay';
    return appendWrites(this.#runtime, this.#held, pending, this.#written, isReplay);
  }

  /** Woken or overtaken can be made good by looking again; a lease that is gone cannot. */
  async #refused(broke: string, move: LeaseMove): Promise<false> {
    this.#isStale = true;
    if (broke === 'lease' && (typeof move !== 'object' || !(await this.#stillMine()))) {
      throw new LeaseLost('another host has taken this run over');
    }
    return false;
  }

  async #stillMine(): Promise<boolean> {
    const outcome = await this.#runtime.store.commit([holdLease(this.lease, false)]);
    return outcome.committed;
  }
}

/** A run that records one of these is getting on, so the crashes of its hosts are counted anew. */
function isProgress(type: string): boolean {
  const { call } = traitsOf(type);
  return call === 'ended' || call === 'dispatched';
}

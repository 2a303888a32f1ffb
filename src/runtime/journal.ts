import { learnValues } from '../engine/masking/learning.ts';
import type { NewEvent, RunEvent } from '../protocol/running/events.ts';
import { finishWork, guardLease, type Lease, releaseLease } from '../store/queue.ts';
import type { Unit, Write } from '../store/sql.ts';
import { sha256Hex } from '../system/digest.ts';
import { announce, appendWrites, positionOf, type RunPosition, recordAndApply } from './append.ts';
import { and, type Change, changeOf, commitOnce } from './change.ts';
import { LeaseLost } from './effects/ledger.ts';
import { traitsOf } from './event-traits.ts';
import type { Recorded } from './recording.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** What a commit does with the lease: keeps it, removes the finished work item, or releases it until the run is due. */
export type LeaseMove = 'hold' | 'finish' | { readonly releaseUntil: number | null; readonly wakes: number };

interface RecordOptions {
  /** The timestamp of the events; now by default. */
  readonly time?: number;
  /** Committed in the same unit as the events: the creation of a child run. */
  readonly change?: Change<unknown>;
}

/**
 * The write buffer of a drive: events are applied to the run in memory at once, and committed in batches.
 *
 * J1. No reader sees an event before it is committed.
 * J2. A commit expects the lease and the sequence that it builds on, and fails without them.
 * J3. After a failed commit the state in memory is discarded, and the run is folded from the log again.
 * J4. The outcome of an effect is committed before, or together with, everything that its node records afterwards.
 */
export class Journal {
  readonly #runtime: Runtime;
  readonly lease: Lease;
  #held: HeldRun;
  /** The position that was last read from or committed to the store. */
  #stored: RunPosition;
  #pending: Recorded[] = [];
  #changes: Change<unknown>[] = [];
  /** Outcomes of effects that are not committed yet, with their nodes. */
  readonly #outcomes: { readonly nodeId: string; readonly write: Write }[] = [];
  /** A commit failed, so the run in memory contains events that are not in the log. */
  #isStale = false;
  /** Nodes of which events were discarded, or whose effect has another outcome than the one they got. */
  #nodesToRepeat = new Set<string>();

  constructor(runtime: Runtime, lease: Lease, held: HeldRun) {
    this.#runtime = runtime;
    this.lease = lease;
    this.#held = held;
    this.#stored = positionOf(held.run);
  }

  get held(): HeldRun {
    return this.#held;
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  /** Whether everything that was recorded is committed. */
  get isWritten(): boolean {
    return this.#stored.sequence === this.#held.run.sequence && this.isSettled;
  }

  /** Whether every outcome is committed. */
  get isSettled(): boolean {
    return this.#outcomes.length === 0;
  }

  /** Applies events to the run and adds them to the next commit, with a change that belongs to them. */
  record(events: readonly NewEvent[], { time = this.#runtime.clock.now(), change }: RecordOptions = {}): RunEvent[] {
    const recorded = events.map((event) => recordAndApply(this.#held, event, time, sha256Hex));
    this.#pending.push(...recorded);
    if (change) this.#changes.push(change);
    return recorded.map(({ event }) => event);
  }

  /** Adds the outcome of an effect to the next commit. */
  recordOutcome(nodeId: string, write: Write): void {
    this.#outcomes.push({ nodeId, write });
  }

  /** Commits the pending events; false after a conflict with another writer or a wake-up, which `catchUp` resolves. */
  async commit(move: LeaseMove): Promise<boolean> {
    const pending = this.#pending;
    const changes = this.#changes;
    const outcomes = this.#outcomes.map(({ write }) => write);
    if (pending.length === 0 && outcomes.length === 0 && move === 'hold') return true;
    this.#pending = [];
    this.#changes = [];
    const writes = [...this.#leaseWrites(move, pending), ...outcomes, ...this.#eventWrites(pending)];
    const append = changeOf(undefined, writes, { announce: [() => this.#committed(pending, outcomes.length)] });
    const { store } = this.#runtime;
    const failed = await commitOnce(store, and(append, ...changes), this.#held.identity.subject.tenant);
    if (failed === undefined) return true;
    this.#discard(pending);
    await this.#storeOutcomes();
    return this.#conflict(failed, move);
  }

  /** Stores outcomes that arrived after the last commit. One that is lost costs what a crash would: it happens again. */
  async storeLateOutcomes(): Promise<void> {
    try {
      await this.#storeOutcomes();
    } catch (error) {
      const { runId } = this.#held.run.facts;
      this.#runtime.log.warn({ runId, err: error }, 'the outcome of an effect could not be stored; it may be repeated');
    }
  }

  /** Commits outcomes by themselves. A node whose effect has another one already has to be called again, to get that. */
  async #storeOutcomes(): Promise<void> {
    const outcomes = [...this.#outcomes];
    const store = async ({ nodeId, write }: (typeof outcomes)[number]): Promise<void> => {
      const failed = await commitOnce(this.#runtime.store, changeOf(undefined, [write]));
      if (failed !== undefined) this.#nodesToRepeat.add(nodeId);
    };
    await Promise.all(outcomes.map(store));
    this.#outcomes.splice(0, outcomes.length);
  }

  #committed(pending: readonly Recorded[], outcomes: number): void {
    this.#outcomes.splice(0, outcomes);
    const before = this.#stored;
    this.#stored = positionOf(this.#held.run);
    if (pending.length > 0) announce(this.#runtime, this.#held, pending, before);
  }

  /**
   * Folds the run from the log again if another writer appended to it or a commit failed. Returns the ids of the nodes
   * that must be called again.
   */
  async catchUp(): Promise<readonly string[]> {
    const { identity, run } = this.#held;
    const row = await this.#runtime.reader.row(identity.subject, run.facts.runId);
    if (!row) throw new LeaseLost('the run is gone');
    if (row.sequence === this.#stored.sequence && !this.#isStale) return [];
    this.#discard(this.#pending);
    this.#pending = [];
    this.#changes = [];
    this.#held = await this.#runtime.reader.load(row);
    // What is sensitive in a child or in the source of a replay is in no event of this run.
    if (run.known) learnValues(this.#held.run, run.known);
    this.#stored = positionOf(this.#held.run);
    this.#isStale = false;
    const nodeIds = [...this.#nodesToRepeat];
    this.#nodesToRepeat = new Set();
    return nodeIds;
  }

  #discard(recorded: readonly Recorded[]): void {
    for (const { event } of recorded) if (event.nodeId !== undefined) this.#nodesToRepeat.add(event.nodeId);
  }

  #leaseWrites(move: LeaseMove, pending: readonly Recorded[]): Unit {
    if (move === 'finish') return [finishWork(this.lease)];
    if (move !== 'hold') return [releaseLease(this.lease, move.releaseUntil, move.wakes)];
    return [
      guardLease(
        this.lease,
        pending.some(({ event }) => isProgress(event.type)),
      ),
    ];
  }

  #eventWrites(pending: readonly Recorded[]): Unit {
    if (pending.length === 0) return [];
    const isReplay = this.#held.run.facts.fork?.mode === 'replay';
    return appendWrites(this.#runtime, this.#held, pending, this.#stored, isReplay);
  }

  /** A wake-up or another writer is a conflict that reading again resolves; a lost lease ends the drive. */
  async #conflict(failedExpectation: string, move: LeaseMove): Promise<false> {
    this.#isStale = true;
    if (failedExpectation === 'lease' && (typeof move !== 'object' || !(await this.#holdsLease()))) {
      throw new LeaseLost('another host has taken over this run');
    }
    return false;
  }

  async #holdsLease(): Promise<boolean> {
    const failed = await commitOnce(this.#runtime.store, changeOf(undefined, [guardLease(this.lease, false)]));
    return failed === undefined;
  }
}

/** Events that reset the run's crash counter, because it is making progress. */
function isProgress(type: string): boolean {
  const { call } = traitsOf(type);
  return call === 'ended' || call === 'dispatched';
}

import type { Clock } from '../system/clock.ts';
import { FairQueue } from '../system/fair-queue.ts';
import { type Meter, NO_METER } from '../system/meter.ts';
import type { CommitOutcome, Row, Unit } from './sql.ts';

/** Units per transaction. More wait for the next one, which bounds how long any caller waits. */
const GROUP_MAX = 128;
/** Writes per transaction, where a long text counts as several. A single unit may have more. */
const GROUP_COST_MAX = 600;
/** Characters that cost as much as a write. */
const CHARACTERS_PER_WRITE = 1_024;
/** The line of the host's own units. */
const HOST = '';

/** Groups that a unit may be left out of because others hold what it needs. */
const BLOCKED_MAX = 4;

/** A unit that was left out of its group because others hold a lock that it needs; it goes with a later one. */
export class Blocked {
  readonly error: Error;

  constructor(error: Error) {
    this.error = error;
  }
}

interface PendingUnit {
  readonly unit: Unit;
  readonly tenant: string;
  readonly cost: number;
  /** How often it was left out. */
  blocked: number;
  readonly resolve: (outcome: CommitOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits units in one transaction and returns an outcome per unit, in order; an Error for a unit whose statement
 * failed, and Blocked for one that is to be tried again.
 */
type CommitGroup = (units: readonly Unit[]) => Promise<readonly (CommitOutcome | Error | Blocked)[]>;

/**
 * Group commit: units that arrive while a transaction is in flight share the next one, so that throughput is not
 * bounded by the cost of a flush. If there are more than one transaction takes, tenants get their share of it.
 */
export class GroupCommit {
  readonly #commitGroup: CommitGroup;
  readonly #clock: Pick<Clock, 'now' | 'soon'>;
  readonly #meter: Pick<Meter, 'committed'>;
  readonly #pending = new FairQueue<PendingUnit>();
  #running = false;
  #onDrained: (() => void)[] = [];

  constructor(
    commitGroup: CommitGroup,
    clock: Pick<Clock, 'now' | 'soon'>,
    meter: Pick<Meter, 'committed'> = NO_METER,
  ) {
    this.#commitGroup = commitGroup;
    this.#clock = clock;
    this.#meter = meter;
  }

  /** Queues a unit of a tenant; settles once the transaction that contains it has ended. */
  commit<R = Row>(unit: Unit, tenant = HOST): Promise<CommitOutcome<R>> {
    const settled = new Promise<CommitOutcome>((resolve, reject) => {
      this.#queue({ unit, tenant, cost: costOf(unit), blocked: 0, resolve, reject });
      this.#schedule();
    });
    // As with `read`, the caller says what its statements return.
    return settled as Promise<CommitOutcome<R>>;
  }

  /** Settles when no unit is queued or in flight. */
  drained(): Promise<void> {
    if (!this.#running && this.#pending.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onDrained.push(resolve);
    });
  }

  #schedule(): void {
    if (this.#running) return;
    this.#running = true;
    this.#clock.soon(() => void this.#flush());
  }

  #queue(pending: PendingUnit): void {
    this.#pending.push(pending.tenant, pending, pending.cost);
  }

  #nextGroup(): readonly PendingUnit[] {
    const group: PendingUnit[] = [];
    for (let cost = 0; group.length < GROUP_MAX; cost += group.at(-1)!.cost) {
      const next = this.#pending.shift((_tenant, unit) => group.length === 0 || cost + unit.cost <= GROUP_COST_MAX);
      if (!next) break;
      group.push(next);
    }
    return group;
  }

  async #flush(): Promise<void> {
    const group = this.#nextGroup();
    const startedAt = this.#clock.now();
    const report = (isFailed: boolean): void =>
      this.#meter.committed({ units: group.length, ms: Math.max(0, this.#clock.now() - startedAt), isFailed });
    try {
      const outcomes = await this.#commitGroup(group.map(({ unit }) => unit));
      report(false);
      group.forEach((pending, index) => {
        this.#settle(pending, outcomes[index]!);
      });
    } catch (error) {
      report(true);
      for (const { reject } of group) reject(error);
    }
    this.#running = false;
    if (this.#pending.size > 0) this.#schedule();
    else for (const resolve of this.#onDrained.splice(0)) resolve();
  }

  #settle(pending: PendingUnit, outcome: CommitOutcome | Error | Blocked): void {
    if (outcome instanceof Error) pending.reject(outcome);
    else if (!(outcome instanceof Blocked)) pending.resolve(outcome);
    else if (++pending.blocked === BLOCKED_MAX) pending.reject(outcome.error);
    else this.#queue(pending);
  }
}

function costOf(unit: Unit): number {
  let characters = 0;
  for (const { params } of unit) {
    for (const param of params) if (typeof param === 'string') characters += param.length;
  }
  return unit.length + characters / CHARACTERS_PER_WRITE;
}

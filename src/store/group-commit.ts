import type { Clock } from '../system/clock.ts';
import { FairQueue } from '../system/fair-queue.ts';
import type { CommitOutcome, Unit } from './sql.ts';

/** Units per transaction. More wait for the next one, which bounds how long any caller waits. */
const GROUP_MAX = 128;
/** Writes per transaction, where a long text counts as several. A single unit may have more. */
const GROUP_COST_MAX = 600;
/** Characters that cost as much as a write. */
const CHARACTERS_PER_WRITE = 1_024;
/** The line of the host's own units. */
const HOST = '';

interface PendingUnit {
  readonly unit: Unit;
  readonly cost: number;
  readonly resolve: (outcome: CommitOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits units in one transaction and returns an outcome per unit, in order; an Error for a unit whose statement
 * failed.
 */
type CommitGroup = (units: readonly Unit[]) => Promise<readonly (CommitOutcome | Error)[]>;

/**
 * Group commit: units that arrive while a transaction is in flight share the next one, so that throughput is not
 * bounded by the cost of a flush. If there are more than one transaction takes, tenants get their share of it.
 */
export class GroupCommit {
  readonly #commitGroup: CommitGroup;
  readonly #clock: Pick<Clock, 'soon'>;
  readonly #pending = new FairQueue<PendingUnit>();
  #running = false;
  #onDrained: (() => void)[] = [];

  constructor(commitGroup: CommitGroup, clock: Pick<Clock, 'soon'>) {
    this.#commitGroup = commitGroup;
    this.#clock = clock;
  }

  /** Queues a unit of a tenant; settles once the transaction that contains it has ended. */
  commit(unit: Unit, tenant = HOST): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      const cost = costOf(unit);
      this.#pending.push(tenant, { unit, cost, resolve, reject }, cost);
      this.#schedule();
    });
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
    try {
      const outcomes = await this.#commitGroup(group.map(({ unit }) => unit));
      group.forEach(({ resolve, reject }, index) => {
        const outcome = outcomes[index]!;
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#running = false;
    if (this.#pending.size > 0) this.#schedule();
    else for (const resolve of this.#onDrained.splice(0)) resolve();
  }
}

function costOf(unit: Unit): number {
  let characters = 0;
  for (const { params } of unit) {
    for (const param of params) if (typeof param === 'string') characters += param.length;
  }
  return unit.length + characters / CHARACTERS_PER_WRITE;
}

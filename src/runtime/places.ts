import type { DueTenant } from '../store/queue.ts';
import type { Clock } from '../system/clock.ts';
import { EQUAL_WEIGHTS, shareOut, type WeightOf } from '../system/fair-queue.ts';

/** How many work items one process handles at the same time. */
export interface PlaceOptions {
  readonly capacity: number;
  /** Items of one tenant, so that the others find room; half of the capacity if omitted. */
  readonly perTenant?: number | undefined;
  /** The tenants' shares of the places; equal ones if omitted. */
  readonly weightOf?: WeightOf | undefined;
}

/** The places of a process for work items: how many each kind and each tenant has taken. */
export class Places {
  readonly #capacity: number;
  readonly #perTenant: number;
  readonly #weightOf: WeightOf;
  readonly #byKind = new Map<string, number>();
  readonly #byTenant = new Map<string, number>();
  readonly #untilEmpty: (() => void)[] = [];
  #taken = 0;

  constructor({ capacity, perTenant = Math.ceil(capacity / 2), weightOf = EQUAL_WEIGHTS }: PlaceOptions) {
    this.#capacity = capacity;
    this.#perTenant = perTenant;
    this.#weightOf = weightOf;
  }

  take(kind: string, tenant: string): void {
    this.#taken++;
    add(this.#byKind, kind, 1);
    add(this.#byTenant, tenant, 1);
  }

  /** Gives a place back; true if somebody may have waited for just this one. */
  leave(kind: string, tenant: string): boolean {
    const wasAwaited = this.#taken >= this.#capacity || !this.hasRoomFor(tenant);
    this.#taken--;
    add(this.#byKind, kind, -1);
    add(this.#byTenant, tenant, -1);
    if (this.#taken === 0) for (const resolve of this.#untilEmpty.splice(0)) resolve();
    return wasAwaited;
  }

  /** Resolves to true when all places are free, to false after the timeout. */
  waitUntilEmpty(clock: Pick<Clock, 'after'>, timeoutMs: number): Promise<boolean> {
    if (this.#taken === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const cancel = clock.after(timeoutMs, () => resolve(false));
      this.#untilEmpty.push(() => {
        cancel();
        resolve(true);
      });
    });
  }

  get room(): number {
    return Math.max(0, this.#capacity - this.#taken);
  }

  hasRoomFor(tenant: string): boolean {
    return this.room > 0 && this.#heldBy(tenant) < this.#perTenant;
  }

  ofKind(kind: string): number {
    return this.#byKind.get(kind) ?? 0;
  }

  /** The number of tenants that have as many places as one may have. */
  get tenantsAtLimit(): number {
    return [...this.#byTenant.values()].filter((held) => held >= this.#perTenant).length;
  }

  /**
   * How many items may be claimed whoever they belong to: while less than half of the places are taken there is room for
   * everybody, and order makes no difference. 0 means that places must be shared out.
   */
  get unshared(): number {
    const most = Math.max(0, ...this.#byTenant.values());
    return Math.max(0, Math.min(Math.floor(this.#capacity / 2) - this.#taken, this.#perTenant - most));
  }

  /** How many of `places` each tenant with due items gets. */
  share(places: number, due: readonly DueTenant[]): ReadonlyMap<string, number> {
    const claimants = due.map(({ tenant }) => ({ tenant, held: this.#heldBy(tenant), max: this.#perTenant }));
    return shareOut(places, claimants, this.#weightOf);
  }

  #heldBy(tenant: string): number {
    return this.#byTenant.get(tenant) ?? 0;
  }
}

/** Counts; names without any leave no entry behind. */
function add(counts: Map<string, number>, name: string, change: number): void {
  const count = (counts.get(name) ?? 0) + change;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

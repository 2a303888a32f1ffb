/** How much of a shared resource each tenant is due, relative to the others. */
export type WeightOf = (tenant: string) => number;

/** Every tenant is due the same. */
export const EQUAL_WEIGHTS: WeightOf = () => 1;

/** An item in line, and how much of the resource it takes. */
interface Entry<T> {
  readonly item: T;
  readonly cost: number;
}

/** A tenant with items in line. */
interface Line<T> {
  readonly entries: Entry<T>[];
  /** The virtual time at which the tenant's next item is served. */
  finish: number;
}

/**
 * A queue that serves tenants in proportion to their weights, however many items each one has in line (weighted fair
 * queueing by cost). The items of one tenant keep their order. A tenant that comes back after a pause has no claim on the
 * turns that it did not use.
 */
export class FairQueue<T> {
  readonly #weightOf: WeightOf;
  readonly #lines = new Map<string, Line<T>>();
  /** When a tenant without items may be served next, for tenants that have been served lately. */
  readonly #finished = new Map<string, number>();
  #virtualTime = 0;
  #size = 0;

  constructor(weightOf: WeightOf = EQUAL_WEIGHTS) {
    this.#weightOf = weightOf;
  }

  get size(): number {
    return this.#size;
  }

  /** The number of items that a tenant has in line. */
  countOf(tenant: string): number {
    return this.#lines.get(tenant)?.entries.length ?? 0;
  }

  /** The tenants that have items in line. */
  tenants(): string[] {
    return [...this.#lines.keys()];
  }

  push(tenant: string, item: T, cost = 1): void {
    this.#size++;
    const line = this.#lines.get(tenant);
    if (line) {
      line.entries.push({ item, cost });
      return;
    }
    const since = Math.max(this.#virtualTime, this.#finished.get(tenant) ?? 0);
    this.#finished.delete(tenant);
    this.#lines.set(tenant, { entries: [{ item, cost }], finish: since + cost / this.#weightOf(tenant) });
  }

  /** Takes the next item of the tenant that is due first, among those that may have theirs now. */
  shift(mayHave: (tenant: string, item: T) => boolean = () => true): T | undefined {
    const [tenant, line] = this.#first(mayHave) ?? [];
    if (tenant === undefined || !line) return undefined;
    const { item, cost } = line.entries.shift()!;
    this.#size--;
    this.#virtualTime = Math.max(this.#virtualTime, line.finish - cost / this.#weightOf(tenant));
    const [next] = line.entries;
    if (next) line.finish += next.cost / this.#weightOf(tenant);
    else this.#rest(tenant, line.finish);
    return item;
  }

  /** Charges a tenant for what an item turned out to cost beyond what it was put in line with. */
  charge(tenant: string, cost: number): void {
    const used = cost / this.#weightOf(tenant);
    const line = this.#lines.get(tenant);
    if (line) line.finish += used;
    else if (this.#lines.size > 0) {
      this.#finished.set(tenant, Math.max(this.#virtualTime, this.#finished.get(tenant) ?? 0) + used);
    }
  }

  #first(mayHave: (tenant: string, item: T) => boolean): [string, Line<T>] | undefined {
    let first: [string, Line<T>] | undefined;
    for (const entry of this.#lines) {
      const [tenant, { finish, entries }] = entry;
      if ((!first || finish < first[1].finish) && mayHave(tenant, entries[0]!.item)) first = entry;
    }
    return first;
  }

  /** Remembers what a tenant has used, until everybody else has had as much. */
  #rest(tenant: string, finish: number): void {
    this.#lines.delete(tenant);
    if (this.#lines.size === 0) {
      this.#finished.clear();
      this.#virtualTime = 0;
      return;
    }
    this.#finished.set(tenant, finish);
    for (const [other, until] of this.#finished) if (until <= this.#virtualTime) this.#finished.delete(other);
  }
}

/** A tenant that wants places: how many it holds already, and how many it may hold. */
interface Claimant {
  readonly tenant: string;
  readonly held: number;
  readonly max: number;
}

/**
 * Shares places out: each goes to the tenant that holds the fewest for its weight. Returns how many each one gets; one
 * that gets none is left out.
 */
export function shareOut(
  places: number,
  claimants: readonly Claimant[],
  weightOf: WeightOf = EQUAL_WEIGHTS,
): ReadonlyMap<string, number> {
  const given = new Map<string, number>();
  for (let left = places; left > 0; left--) {
    let poorest: { readonly tenant: string; readonly load: number } | undefined;
    for (const { tenant, held, max } of claimants) {
      const has = held + (given.get(tenant) ?? 0);
      const load = (has + 1) / weightOf(tenant);
      if (has < max && (!poorest || load < poorest.load)) poorest = { tenant, load };
    }
    if (!poorest) break;
    given.set(poorest.tenant, (given.get(poorest.tenant) ?? 0) + 1);
  }
  return given;
}

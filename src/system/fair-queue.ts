/** How much of a shared resource each tenant is due, relative to the others. */
export type WeightOf = (tenant: string) => number;

/** Every tenant is due the same. */
export const EQUAL_WEIGHTS: WeightOf = () => 1;

/** An item in line, and how much of the resource it takes. */
interface Entry<T> {
  readonly item: T;
  readonly cost: number;
}

/** A tenant that has items in line, or had some lately. */
interface Line<T> {
  readonly tenant: string;
  readonly entries: Entry<T>[];
  /** The virtual time at which the tenant's next item is served or, without items, its last one was. */
  finish: number;
}

/** Lines that are kept before idle ones are deleted. */
const LINES_MIN = 1_024;

/**
 * A queue that serves tenants in proportion to their weights, however many items each one has in line (weighted fair
 * queueing by cost). The items of one tenant keep their order. A tenant that comes back after a pause has no claim on the
 * turns that it did not use.
 */
export class FairQueue<T> {
  readonly #weightOf: WeightOf;
  readonly #lines = new Map<string, Line<T>>();
  /** The lines that have items. */
  readonly #waiting: Line<T>[] = [];
  #virtualTime = 0;
  /** The latest virtual time at which any tenant is or was served. */
  #latest = 0;
  /** The number of lines at which idle ones are looked for. */
  #forgetAt = LINES_MIN;
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

  /** The minimum of a number of each tenant that has items in line; infinite if there is none. */
  minOf(numberOf: (tenant: string) => number): number {
    let min = Number.POSITIVE_INFINITY;
    for (const { tenant } of this.#waiting) min = Math.min(min, numberOf(tenant));
    return min;
  }

  push(tenant: string, item: T, cost = 1): void {
    this.#size++;
    const line = this.#lineOf(tenant);
    line.entries.push({ item, cost });
    if (line.entries.length > 1) return;
    this.#waiting.push(line);
    this.#setFinish(line, Math.max(this.#virtualTime, line.finish) + cost / this.#weightOf(tenant));
  }

  /** Takes the next item of the tenant that is due first, among those that may have theirs now. */
  shift(mayHave: (tenant: string, item: T) => boolean = () => true): T | undefined {
    const line = this.#first(mayHave);
    if (!line) return undefined;
    const { item, cost } = line.entries.shift()!;
    this.#size--;
    this.#virtualTime = Math.max(this.#virtualTime, line.finish - cost / this.#weightOf(line.tenant));
    const [next] = line.entries;
    if (next) this.#setFinish(line, line.finish + next.cost / this.#weightOf(line.tenant));
    else this.#waiting.splice(this.#waiting.indexOf(line), 1);
    // Once nobody waits, nobody has had more than others.
    if (this.#waiting.length === 0) this.#virtualTime = this.#latest;
    return item;
  }

  /** Charges a tenant for what an item turned out to cost beyond what it was put in line with. */
  charge(tenant: string, cost: number): void {
    if (this.#waiting.length === 0) return;
    const line = this.#lineOf(tenant);
    const since = line.entries.length > 0 ? line.finish : Math.max(this.#virtualTime, line.finish);
    this.#setFinish(line, since + cost / this.#weightOf(tenant));
  }

  #setFinish(line: Line<T>, finish: number): void {
    line.finish = finish;
    if (finish > this.#latest) this.#latest = finish;
  }

  #lineOf(tenant: string): Line<T> {
    let line = this.#lines.get(tenant);
    if (!line) {
      if (this.#lines.size >= this.#forgetAt) this.#forget();
      line = { tenant, entries: [], finish: this.#virtualTime };
      this.#lines.set(tenant, line);
    }
    return line;
  }

  #first(mayHave: (tenant: string, item: T) => boolean): Line<T> | undefined {
    let first: Line<T> | undefined;
    for (const line of this.#waiting) {
      if ((!first || line.finish < first.finish) && mayHave(line.tenant, line.entries[0]!.item)) first = line;
    }
    return first;
  }

  /** Deletes idle lines whose finish has passed: they no longer change the order. */
  #forget(): void {
    for (const { tenant, entries, finish } of this.#lines.values()) {
      if (entries.length === 0 && finish <= this.#virtualTime) this.#lines.delete(tenant);
    }
    this.#forgetAt = Math.max(LINES_MIN, 2 * this.#lines.size);
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

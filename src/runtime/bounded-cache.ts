/** A value with its weight, and whether it was used since the cache last looked for something to evict. */
interface Entry<V> {
  value: V;
  weight: number;
  wasUsed: boolean;
}

/**
 * A cache bounded by weight. It evicts the oldest entries, but gives those that were used since a second chance, and
 * always keeps the newest one (the CLOCK algorithm). An exact order of use would cost two writes for every read.
 */
export class BoundedCache<K, V> {
  readonly #entries = new Map<K, Entry<V>>();
  readonly #max: number;
  readonly #weigh: (value: V) => number;
  #total = 0;

  constructor(max: number, weigh: (value: V) => number = () => 1) {
    this.#max = max;
    this.#weigh = weigh;
  }

  /** Reads a value, and notes that it is in use. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    entry.wasUsed = true;
    return entry.value;
  }

  /** Stores a value, and evicts others until the total weight is at most `max`. */
  set(key: K, value: V): void {
    const weight = this.#weigh(value);
    const known = this.#entries.get(key);
    this.#total += weight - (known?.weight ?? 0);
    if (known) Object.assign(known, { value, weight, wasUsed: true });
    else this.#entries.set(key, { value, weight, wasUsed: false });
    if (this.#total > this.#max) this.#evict(key);
  }

  delete(key: K): void {
    this.#total -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  /** Ends, because an entry with a second chance comes around again without one. */
  #evict(newest: K): void {
    for (const [key, entry] of this.#entries) {
      if (this.#total <= this.#max || this.#entries.size === 1) break;
      this.#entries.delete(key);
      if (entry.wasUsed || key === newest) this.#entries.set(key, Object.assign(entry, { wasUsed: false }));
      else this.#total -= entry.weight;
    }
  }

  get size(): number {
    return this.#entries.size;
  }
}

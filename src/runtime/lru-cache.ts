/** A cache bounded by weight: it evicts the least recently used entries, but always keeps the newest one. */
export class LruCache<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>();
  readonly #max: number;
  readonly #weigh: (value: V) => number;
  #total = 0;
  /** The most recently used key, which need not be moved. */
  #newest: K | undefined;

  constructor(max: number, weigh: (value: V) => number = () => 1) {
    this.#max = max;
    this.#weigh = weigh;
  }

  /** Reads a value and marks it as the most recently used. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (key !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      this.#newest = key;
    }
    return entry.value;
  }

  /** Stores a value, and evicts others until the total weight is at most `max`. */
  set(key: K, value: V): void {
    if (key !== this.#newest) this.delete(key);
    const weight = this.#weigh(value);
    this.#total += weight - (this.#entries.get(key)?.weight ?? 0);
    this.#entries.set(key, { value, weight });
    this.#newest = key;
    if (this.#total > this.#max) this.#evict();
  }

  delete(key: K): void {
    this.#total -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  #evict(): void {
    for (const oldest of this.#entries.keys()) {
      if (this.#total <= this.#max || this.#entries.size === 1) break;
      this.delete(oldest);
    }
  }

  get size(): number {
    return this.#entries.size;
  }
}

/** A map that forgets what was used least recently once the weights of its entries add up to more than `max`. */
export class LruCache<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>();
  readonly #max: number;
  readonly #weigh: (value: V) => number;
  #total = 0;

  constructor(max: number, weigh: (value: V) => number = () => 1) {
    this.#max = max;
    this.#weigh = weigh;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    this.delete(key);
    const weight = this.#weigh(value);
    this.#entries.set(key, { value, weight });
    this.#total += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#total <= this.#max || this.#entries.size === 1) break;
      this.delete(oldest);
    }
  }

  delete(key: K): void {
    this.#total -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  get size(): number {
    return this.#entries.size;
  }
}

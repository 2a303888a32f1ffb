/** A mutex per key: actions with the same key run one after the other, in order; other keys do not wait. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs an action once all earlier ones with the same key have settled; a failure only rejects its own caller. */
  runExclusive<T>(key: string, action: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(action);
    const settled = result.then(
      () => {},
      () => {},
    );
    this.#last.set(key, settled);
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    return result;
  }

  /** Number of keys that an action holds or waits for. */
  get size(): number {
    return this.#last.size;
  }
}

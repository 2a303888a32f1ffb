/** Who wants the same thing goes one after the other; who wants something else does not wait. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  take<T>(thing: string, act: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(thing) ?? Promise.resolve()).then(act);
    const isOver = turn.then(
      () => {},
      () => {},
    );
    this.#last.set(thing, isOver);
    void isOver.then(() => {
      if (this.#last.get(thing) === isOver) this.#last.delete(thing);
    });
    return turn;
  }

  /** Things that somebody wants right now. */
  get size(): number {
    return this.#last.size;
  }
}

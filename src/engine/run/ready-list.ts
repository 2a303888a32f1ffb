/** The indexes of the nodes that may start, sorted by rank. */
export class ReadyList {
  readonly #rank: (index: number) => number;
  readonly #indexes: number[] = [];

  constructor(rank: (index: number) => number) {
    this.#rank = rank;
  }

  add(index: number): void {
    this.#indexes.splice(this.#position(index), 0, index);
  }

  delete(index: number): void {
    const position = this.#position(index);
    if (this.#indexes[position] === index) this.#indexes.splice(position, 1);
  }

  get size(): number {
    return this.#indexes.length;
  }

  [Symbol.iterator](): Iterator<number> {
    return this.#indexes[Symbol.iterator]();
  }

  /** Binary search for where `index` is or belongs; ranks are distinct. */
  #position(index: number): number {
    const rank = this.#rank(index);
    let low = 0;
    let high = this.#indexes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#rank(this.#indexes[middle]!) < rank) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

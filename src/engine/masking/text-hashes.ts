/** A prime below 2^26: products of two remainders are exact. */
const PRIME = 67_108_859;
const BASE = 31_415_927;

/** The powers of the base, as far as they were needed. */
const powers = [1];

function powerOf(exponent: number): number {
  for (let next = powers.length; next <= exponent; next++) powers.push((powers[next - 1]! * BASE) % PRIME);
  return powers[exponent]!;
}

/**
 * Hashes of all parts of a text, each in constant time however long it is. Equal parts have equal hashes, also in
 * different texts; different parts rarely do, unless somebody has made them so.
 */
export class TextHashes {
  /** The hash of the text up to each place. */
  readonly #upTo: Uint32Array;

  constructor(text: string) {
    this.#upTo = new Uint32Array(text.length + 1);
    let hash = 0;
    for (let index = 0; index < text.length; index++) {
      hash = (hash * BASE + text.charCodeAt(index) + 1) % PRIME;
      this.#upTo[index + 1] = hash;
    }
  }

  /** The hash of the part of this length that begins at a place. */
  of(index: number, length: number): number {
    const before = (this.#upTo[index]! * powerOf(length)) % PRIME;
    return (this.#upTo[index + length]! - before + PRIME) % PRIME;
  }
}

/** How likely it is that two groups differ as they do by chance alone. */

const SHUFFLES_MAX = 2_000;
/** Values drawn by one test: it runs while other requests wait, so large groups are shuffled less often. */
const DRAWS_MAX = 200_000;
const SEED = 20_261_116;
/** Sums of probabilities and means differ by rounding alone. */
const TOLERANCE = 1e-9;

/** Fisher's exact test, two-sided: `a` of `ofA` against `b` of `ofB`. */
export function fisherExact(a: number, ofA: number, b: number, ofB: number): number {
  const [all, hits] = [ofA + ofB, a + b];
  const logs = logFactorials(all);
  const choose = (n: number, k: number): number => logs[n]! - logs[k]! - logs[n - k]!;
  const probability = (x: number): number => Math.exp(choose(ofA, x) + choose(ofB, hits - x) - choose(all, hits));
  const observed = probability(a);
  let p = 0;
  for (let x = Math.max(0, hits - ofB); x <= Math.min(ofA, hits); x++) {
    const each = probability(x);
    if (each <= observed * (1 + TOLERANCE)) p += each;
  }
  return Math.min(1, p);
}

function logFactorials(until: number): number[] {
  const logs = [0];
  for (let n = 1; n <= until; n++) logs.push(logs[n - 1]! + Math.log(n));
  return logs;
}

/** A permutation test of the difference of means, two-sided. The shuffles are the same each time, so the answer is too. */
export function permutationTest(before: readonly number[], after: readonly number[]): number {
  const all = [...before, ...after];
  const drawn = Math.min(before.length, after.length);
  const total = mean(all) * all.length;
  const differenceOf = (sum: number): number => Math.abs(sum / drawn - (total - sum) / (all.length - drawn));
  const observed = Math.abs(mean(before) - mean(after));
  const shuffles = Math.min(SHUFFLES_MAX, Math.floor(DRAWS_MAX / drawn));
  const chance = chanceFrom(SEED);
  let extreme = 1;
  for (let shuffle = 0; shuffle < shuffles; shuffle++) {
    // Drawing the smaller group is enough: the rest is the other one.
    let sum = 0;
    for (let at = 0; at < drawn; at++) {
      const other = at + Math.floor(chance() * (all.length - at));
      const value = all[other]!;
      all[other] = all[at]!;
      all[at] = value;
      sum += value;
    }
    if (differenceOf(sum) >= observed - TOLERANCE) extreme++;
  }
  return extreme / (shuffles + 1);
}

/** The arithmetic mean; 0 of nothing. */
export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Numbers from 0 to 1 that only the seed decides (mulberry32). */
function chanceFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

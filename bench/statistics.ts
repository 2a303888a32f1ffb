/** The value in the middle; of an even number of them the upper one. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which a part of them lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;
}

/** Half the width of a normal distribution's middle 95 %, in standard deviations of a count of coin tosses. */
const HALF_WIDTH = 1.96 / 2;

/** Where the median lies with a confidence of 95 %, whatever the distribution: the order of the values alone says it. */
export function medianInterval(values: readonly number[]): readonly [number, number] {
  const sorted = [...values].sort((a, b) => a - b);
  const outside = Math.max(0, Math.floor(sorted.length / 2 - HALF_WIDTH * Math.sqrt(sorted.length)));
  return [sorted[outside]!, sorted[sorted.length - 1 - outside]!];
}

/** The value in the middle; of an even number of them the upper one. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which a part of them lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;
}

/** A median with the least and the most of the values. */
export function spread(values: readonly number[], digits = 0): string {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)];
  return `${middle.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}

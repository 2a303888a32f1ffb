/** How the time to redact a text grows with its length: a text four times as long may take eight times the time. */
import { redactText } from '../src/system/redaction.ts';
import {
  ADVERSARIAL_FILLERS,
  ADVERSARIAL_OPENINGS,
  ADVERSARIAL_UNITS,
  EVERY_CLUE,
} from '../test/support/adversarial-texts.ts';

const SIZES = [10_000, 250_000];
/** Linear growth needs four, quadratic sixteen. */
const GROWTH_MAX = 8;
/** Below this the clock is too coarse. */
const FLOOR_MS = 4;
/** A busy machine may spoil some tries but not all. */
const TRIES_MAX = 5;

/** Prints the worst growth over all adversarial texts, and names those that grow faster than wanted. */
export async function benchRedaction(): Promise<void> {
  const texts: readonly (readonly [opening: string, unit: string])[] = [
    ...ADVERSARIAL_UNITS.map((unit) => ['', unit] as const),
    ...ADVERSARIAL_OPENINGS.flatMap((opening) => ADVERSARIAL_FILLERS.map((unit) => [opening, unit] as const)),
  ];
  console.log(`\nthe time to redact ${texts.length} adversarial texts, four times as long against as long`);
  let worst = 0;
  for (const [opening, unit] of texts) {
    const growth = Math.max(
      ...SIZES.map((size) => growthOf((length) => opening + unit.repeat(length / unit.length), size)),
    );
    if (growth > GROWTH_MAX) console.log(`  ${JSON.stringify(opening + unit)}: ${growth.toFixed(1)}`);
    worst = Math.max(worst, growth);
  }
  console.log(`  worst growth ${worst.toFixed(1)} (at most ${GROWTH_MAX} wanted)`);
}

function growthOf(textOf: (length: number) => string, size: number): number {
  const [short, long] = [textOf(size) + EVERY_CLUE, textOf(4 * size) + EVERY_CLUE];
  let growth = Infinity;
  for (let tries = 0; tries < TRIES_MAX && growth > GROWTH_MAX; tries++) {
    growth = Math.min(growth, timeOf(long) / Math.max(timeOf(short), FLOOR_MS));
  }
  return growth;
}

function timeOf(text: string): number {
  const start = performance.now();
  redactText(text);
  return performance.now() - start;
}

import { expect, it } from 'vitest';
import { DAYS, type DayKind, simulate } from './simulation.ts';

/**
 * Days with slow, lost and doubled messages, killed and cut-off hosts. Each seed is a day; a failure names its own.
 * `npm run sim` lives through as many as one likes.
 */
const SEEDS: Record<DayKind, readonly number[]> = {
  shared: [1, 2, 5, 21, 7_700_061],
  late: [1, 2],
  owned: [1, 2],
};
/** Days that nobody has lived through before; the seed in a failure's text repeats it. */
const FRESH_EACH = 1;
const chosen = DAYS.flatMap((kind) => SEEDS[kind].map((seed) => ({ kind, seed })));
const fresh = DAYS.flatMap((kind) =>
  Array.from({ length: FRESH_EACH }, () => ({ kind, seed: Math.floor(Math.random() * 2 ** 31) })),
);

/** The first day of each kind is lived through once for all who look at it. */
const first = new Map<DayKind, ReturnType<typeof simulate>>();
function dayOf(seed: number, kind: DayKind): ReturnType<typeof simulate> {
  if (seed !== 1) return simulate(seed, kind);
  const day = first.get(kind) ?? simulate(seed, kind);
  first.set(kind, day);
  return day;
}

it.each([...chosen, ...fresh])('every promise holds through the $kind day of seed $seed', async ({ kind, seed }) => {
  const { runs, statuses } = await dayOf(seed, kind);
  expect(runs).toBeGreaterThan(50);
  expect(statuses.completed).toBeGreaterThan(0);
});

it('the days are bad ones', async () => {
  const { runs, kills, answers } = await dayOf(1, 'shared');
  expect(runs).toBeGreaterThan(100);
  expect(kills).toBeGreaterThan(0);
  expect(answers).toBeGreaterThan(20);
});

it.each(DAYS)('a seed gives the same %s day twice', async (kind) => {
  expect(await simulate(1, kind)).toEqual(await dayOf(1, kind));
});

import { expect, it } from 'vitest';
import { DAYS, type DayKind, simulate } from './simulation.ts';

/** Days with slow, lost and doubled messages, killed and cut-off hosts. Each seed is a day; a failure names its own. */
const SEEDS: Record<DayKind, readonly number[]> = {
  shared: [1, 2, 3, 5, 8, 13, 21, 34, 7_700_061],
  late: [1, 2, 3],
  owned: [1, 2, 3, 5],
};
/** Days that nobody has lived through before; the seed in a failure's text repeats it. */
const FRESH_EACH = 1;
const chosen = DAYS.flatMap((kind) => SEEDS[kind].map((seed) => ({ kind, seed })));
const fresh = DAYS.flatMap((kind) =>
  Array.from({ length: FRESH_EACH }, () => ({ kind, seed: Math.floor(Math.random() * 2 ** 31) })),
);

it.each([...chosen, ...fresh])('every promise holds through the $kind day of seed $seed', async ({ kind, seed }) => {
  const { runs, statuses } = await simulate(seed, kind);
  expect(runs).toBeGreaterThan(50);
  expect(statuses.completed).toBeGreaterThan(0);
});

it('the days are bad ones', async () => {
  const { runs, kills, answers } = await simulate(1);
  expect(runs).toBeGreaterThan(100);
  expect(kills).toBeGreaterThan(0);
  expect(answers).toBeGreaterThan(20);
});

it.each(DAYS)('a seed gives the same %s day twice', async (kind) => {
  expect(await simulate(55, kind)).toEqual(await simulate(55, kind));
});

import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

/** Days with slow, lost and doubled messages, killed and cut-off hosts. Each seed is a day; a failure names its own. */
const SEEDS = [1, 2, 3, 5, 8, 13, 21, 34];

it.each(SEEDS)('every promise holds through the day of seed %i', async (seed) => {
  const { runs, kills, statuses, answers } = await simulate(seed);
  expect(runs).toBeGreaterThan(100);
  expect(kills).toBeGreaterThan(0);
  expect(answers).toBeGreaterThan(20);
  expect(statuses.completed).toBeGreaterThan(0);
});

it('a seed gives the same day twice', async () => {
  expect(await simulate(55)).toEqual(await simulate(55));
});

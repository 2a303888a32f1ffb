import { expect, it } from 'vitest';
import { DAYS, type DayKind, simulate } from './simulation.ts';

/**
 * Days with slow, lost and doubled messages, killed and cut-off hosts. Each seed is a day; a failure names its own.
 * `npm run sim` lives through as many as one likes.
 */
const SEEDS = [1, 21, 7_700_061];
/** Days of each kind that nobody has lived through before; the seed in a failure's text repeats it. */
const fresh = DAYS.map((kind) => ({ kind, seed: Math.floor(Math.random() * 2 ** 31) }));
const chosen = SEEDS.map((seed) => ({ kind: DAYS[0], seed }));

/** A day is lived through once for all who look at it. */
const days = new Map<string, ReturnType<typeof simulate>>();
function dayOf(seed: number, kind: DayKind): ReturnType<typeof simulate> {
  const key = `${kind} ${seed}`;
  const day = days.get(key) ?? simulate(seed, kind);
  days.set(key, day);
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

it.each(fresh)('seed $seed gives the same $kind day twice', async ({ kind, seed }) => {
  expect(await simulate(seed, kind)).toEqual(await dayOf(seed, kind));
});

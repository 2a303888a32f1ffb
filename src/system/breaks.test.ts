import { expect, it } from 'vitest';
import { Breaks } from './breaks.ts';

it('long work takes a break once it has gone on for long, and then anew', async () => {
  let now = 0;
  let turns = 0;
  const breaks = new Breaks({
    now: () => now,
    soon: (action) => {
      turns++;
      action();
    },
  });
  const work = async (ms: number): Promise<number> => {
    now += ms;
    await breaks.take();
    return turns;
  };
  expect([await work(4), await work(5), await work(1), await work(9), await work(30)]).toEqual([0, 0, 1, 1, 2]);
});

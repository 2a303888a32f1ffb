import { expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { collectGarbageWhenIdle } from './memory.ts';

const MB = 1_024 * 1_024;
const CHECK_MS = 3_000;

it('collects the garbage of the start early, and later only after five minutes of rest', () => {
  const clock = new ManualClock();
  let isIdle = true;
  let bytes = 100 * MB;
  let collections = 0;
  const collect = (): void => {
    collections++;
    bytes = 50 * MB;
  };
  const check = (times: number): void => {
    for (let time = 0; time < times; time++) clock.advance(CHECK_MS);
  };
  const cancel = collectGarbageWhenIdle(() => isIdle, clock, { bytes: () => bytes, collect });
  check(1);
  expect(collections).toBe(1);
  bytes = 100 * MB;
  check(90);
  expect(collections).toBe(1);
  isIdle = false;
  check(1);
  isIdle = true;
  check(99);
  expect(collections).toBe(1);
  check(1);
  expect(collections).toBe(2);
  // Nothing has grown since.
  check(200);
  expect(collections).toBe(2);
  cancel();
});

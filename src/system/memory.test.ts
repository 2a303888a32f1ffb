import { expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { collectGarbageWhenIdle } from './memory.ts';

const MB = 1_024 * 1_024;
const CHECK_MS = 3_000;

/** A process whose heap is grown and collected by hand. */
function watched() {
  const clock = new ManualClock();
  const process = { isIdle: true, bytes: 100 * MB, collections: 0, usedMs: 0 };
  const collect = (): void => {
    process.collections++;
    process.bytes = 50 * MB;
  };
  const check = (times: number): void => {
    for (let time = 0; time < times; time++) clock.advance(CHECK_MS);
  };
  /** Works for a moment; the collection comes with the last of the checks that make five minutes. */
  const expectRestAfterWork = (): void => {
    const { collections } = process;
    process.usedMs += 0.2 * CHECK_MS;
    check(1);
    check(99);
    expect(process.collections).toBe(collections);
    check(1);
    expect(process.collections).toBe(collections + 1);
  };
  const heap = { bytes: () => process.bytes, collect };
  return {
    process,
    check,
    expectRestAfterWork,
    cancel: collectGarbageWhenIdle(
      () => process.isIdle,
      { after: clock.after.bind(clock), processorMs: () => process.usedMs },
      heap,
    ),
  };
}

it('collects the garbage of the start early, and later only after five minutes of rest', () => {
  const { process, check, expectRestAfterWork, cancel } = watched();
  check(1);
  expect(process.collections).toBe(1);
  process.bytes = 100 * MB;
  check(90);
  expect(process.collections).toBe(1);
  expectRestAfterWork();
  // Nothing has grown since.
  check(200);
  expect(process.collections).toBe(2);
  cancel();
});

it('waits for five minutes of rest before the first collection too, if the process was busy from its start', () => {
  const { expectRestAfterWork, cancel } = watched();
  expectRestAfterWork();
  cancel();
});

it('does not take the pauses of a busy process for rest', () => {
  const { process, check, cancel } = watched();
  for (let checks = 0; checks < 200; checks++) {
    process.usedMs += 0.2 * CHECK_MS;
    check(1);
  }
  expect(process.collections).toBe(0);
  cancel();
});

it('rests although something small is in hand now and then, and collects when nothing is', () => {
  const { process, check, cancel } = watched();
  for (let checks = 0; checks < 100; checks++) {
    process.isIdle = checks % 10 > 0;
    check(1);
  }
  expect(process.collections).toBe(1);
  process.bytes = 100 * MB;
  process.isIdle = false;
  check(50);
  expect(process.collections).toBe(1);
  process.isIdle = true;
  check(1);
  expect(process.collections).toBe(2);
  cancel();
});

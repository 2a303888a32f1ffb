import { expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { KEEP_ALIVE_MS, KeepAlive } from './keep-alive.ts';

const STEP_MS = 500;

/** Opens a stream, and tells when it got comments. */
function stream(clock: ManualClock, keepAlive: KeepAlive) {
  const openedAt = clock.now();
  const at: number[] = [];
  const close = keepAlive.add(() => void at.push(clock.now() - openedAt));
  return { at, close };
}

function pass(clock: ManualClock, ms: number): void {
  for (let passed = 0; passed < ms; passed += STEP_MS) clock.advance(STEP_MS);
}

it('no stream is silent for longer than promised, whenever it was opened', () => {
  const clock = new ManualClock();
  const keepAlive = new KeepAlive(clock);
  const streams = [];
  for (let opened = 0; opened < 40; opened++) {
    streams.push(stream(clock, keepAlive));
    clock.advance(STEP_MS);
  }
  pass(clock, 3 * KEEP_ALIVE_MS);
  for (const { at } of streams) {
    const silences = at.map((time, index) => time - (at[index - 1] ?? 0));
    expect(silences.length).toBeGreaterThanOrEqual(3);
    expect(Math.max(...silences)).toBeLessThanOrEqual(KEEP_ALIVE_MS);
    expect(Math.min(...silences.slice(1))).toBe(KEEP_ALIVE_MS);
  }
});

it('a stream that was closed gets no comment, and later ones get as many as before', () => {
  const clock = new ManualClock();
  const keepAlive = new KeepAlive(clock);
  const first = stream(clock, keepAlive);
  first.close();
  first.close();
  const second = stream(clock, keepAlive);
  pass(clock, 2 * KEEP_ALIVE_MS);
  expect(first.at).toEqual([]);
  expect(second.at).toEqual([14_000, 14_000 + KEEP_ALIVE_MS]);
});

it('streams that are opened at once get their comments one part after the other', () => {
  const clock = new ManualClock();
  const keepAlive = new KeepAlive(clock);
  const streams = Array.from({ length: 100 }, () => stream(clock, keepAlive));
  pass(clock, KEEP_ALIVE_MS);
  const times = Map.groupBy(streams, ({ at }) => at[0]);
  expect([...times].map(([at, { length }]) => [at, length]).sort()).toEqual(
    [11, 12, 13, 14, 15].map((seconds) => [seconds * 1_000, 20]),
  );
});

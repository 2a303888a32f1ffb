import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { CorrectedClock } from '../system/clock.ts';
import { ClockWatch } from './clock-watch.ts';
import type { Row } from './sql.ts';

/** A machine, and a store that is ahead of it; each question takes some time. */
function machine({ aheadMs = 0, isShared = true, roundTripMs = 0 } = {}) {
  const own = new ManualClock();
  const clock = new CorrectedClock(own);
  const told: string[] = [];
  const state = { aheadMs, roundTripMs };
  const store = {
    isShared,
    read: async <R = Row>(): Promise<R[]> => {
      own.advance(state.roundTripMs / 2);
      const now = own.now() + state.aheadMs;
      own.advance(state.roundTripMs / 2);
      return [{ now }] as R[];
    },
  };
  const say = (level: string) => (fields: object) => void told.push(`${level} ${JSON.stringify(fields)}`);
  const log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  const watch = new ClockWatch(store, { clock, log });
  return { own, clock, watch, told, state, ahead: () => clock.now() - own.now() };
}

describe('the clock of a host', () => {
  it.each([60_000, -60_000, 0])('is put right by what the store is ahead: %i ms', async (aheadMs) => {
    const { watch, ahead } = machine({ aheadMs });
    await watch.start();
    expect([ahead(), watch.offsetMs]).toEqual([aheadMs, aheadMs]);
    watch.stop();
  });

  it('is not fooled by how long the answer takes', async () => {
    const { watch, ahead } = machine({ aheadMs: 60_000, roundTripMs: 400 });
    await watch.start();
    expect(ahead()).toBe(60_000);
    watch.stop();
  });

  it('stays as it is while the difference is within what the measurement leaves open', async () => {
    const { watch, ahead } = machine({ aheadMs: 150, roundTripMs: 400 });
    await watch.start();
    expect(ahead()).toBe(0);
    watch.stop();
  });

  it('is that of the machine where the store is its own', async () => {
    const { watch, ahead } = machine({ aheadMs: 60_000, isShared: false });
    await watch.start();
    expect([ahead(), watch.offsetMs]).toEqual([0, 0]);
  });

  it('is told to operators when it is a second off, and when it is right again', async () => {
    const { watch, told, state, own, ahead } = machine({ aheadMs: 900 });
    await watch.start();
    expect(told).toEqual([]);
    state.aheadMs = 5_000;
    own.advance(5_000);
    await expect.poll(ahead).toBe(5_000);
    state.aheadMs = 0;
    own.advance(5_000);
    await expect.poll(ahead).toBe(0);
    expect(told).toEqual(['warn {"offsetMs":5000}', 'info {"offsetMs":0}']);
    watch.stop();
  });
});

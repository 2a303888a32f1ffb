import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { withTimeout } from './clock.ts';

describe('work with a timeout', () => {
  it('is given up when the time is over', async () => {
    const clock = new ManualClock();
    const result = withTimeout(clock, 100, new Promise(() => {}));
    clock.advance(100);
    expect(await result).toBeUndefined();
  });

  it('counts if its result has arrived while the process stood still', async () => {
    const clock = new ManualClock();
    const work = Promise.withResolvers<string>();
    const result = withTimeout(clock, 100, work.promise);
    // The timer is due first. What has arrived is read in the same turn.
    clock.advance(60_000);
    work.resolve('read');
    expect(await result).toBe('read');
  });
});

import { describe, expect, it } from 'vitest';
import { StoreFailure } from '../store/store.ts';
import { realClock } from '../system/real.ts';
import { throughOutage } from './outage.ts';

/** Passes the time at once. */
const clock = {
  ...realClock,
  after: (_ms: number, action: () => void) => {
    setImmediate(action);
    return () => {};
  },
};

describe('a stream whose store is away', () => {
  it('goes on when it is back', async () => {
    let failures = 3;
    const read = async (): Promise<string> => {
      if (failures-- > 0) throw new StoreFailure('away');
      return 'read';
    };
    expect(await throughOutage(clock, new AbortController().signal, read)).toBe('read');
  });

  it('ends when its reader leaves', async () => {
    const reader = new AbortController();
    const read = (): Promise<string> => {
      reader.abort();
      return Promise.reject(new StoreFailure('away'));
    };
    expect(await throughOutage(clock, reader.signal, read)).toBeUndefined();
  });

  it('does not wait out what is no outage', async () => {
    const read = (): Promise<string> => Promise.reject(new TypeError('a mistake'));
    await expect(throughOutage(clock, new AbortController().signal, read)).rejects.toThrow('a mistake');
  });
});

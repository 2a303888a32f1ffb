import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isoTime } from './iso-time.ts';

describe('a time as text', () => {
  it('is that of the time, whichever was written before', () => {
    const times = fc.array(fc.date({ noInvalidDate: true }).map((date) => date.getTime()));
    fc.assert(
      fc.property(times, (all) => {
        for (const time of [...all, ...all]) expect(isoTime(time)).toBe(new Date(time).toISOString());
      }),
    );
  });

  it('is not made of what is no time', () => {
    expect(() => isoTime(Number.NaN)).toThrow(RangeError);
    expect(() => isoTime(Number.NaN)).toThrow(RangeError);
  });
});

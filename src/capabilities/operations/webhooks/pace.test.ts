import { describe, expect, it } from 'vitest';
import { Pace } from './pace.ts';

/** Lets in as many as there is room for, and says how many that were. */
function fill(pace: Pace, webhookId: string, most = 100): number {
  let count = 0;
  while (count < most && pace.enter(webhookId)) count++;
  return count;
}

describe('places for deliveries', () => {
  it('are few for a receiver that was not tried yet, and as many as wanted once it answers well', () => {
    const pace = new Pace();
    expect(fill(pace, 'new')).toBe(16);
    pace.note('new', true);
    expect(fill(pace, 'new')).toBe(100);
  });

  it('are fewest while a receiver does not answer well', () => {
    const pace = new Pace();
    pace.enter('down');
    pace.note('down', false);
    pace.leave('down');
    expect(fill(pace, 'down')).toBe(4);
    expect(fill(pace, 'other')).toBe(16);
    pace.note('down', true);
    expect(pace.enter('down')).toBe(true);
  });

  it('become free again', () => {
    const pace = new Pace();
    pace.note('down', false);
    for (let round = 0; round < 3; round++) {
      expect(fill(pace, 'down')).toBe(4);
      for (let left = 0; left < 4; left++) pace.leave('down');
    }
  });
});

import { describe, expect, it } from 'vitest';
import { ReceiverLimits } from './receiver-limits.ts';

/** Enters until the limit is reached, and returns how often. */
function fill(limits: ReceiverLimits, webhookId: string, most = 100): number {
  let count = 0;
  while (count < most && limits.enter(webhookId)) count++;
  return count;
}

describe('the limits of receivers', () => {
  it('are low for a receiver that was not tried yet, and lifted once it answers well', () => {
    const limits = new ReceiverLimits();
    expect(fill(limits, 'new')).toBe(16);
    limits.note('new', true);
    expect(fill(limits, 'new')).toBe(100);
  });

  it('are lowest while a receiver does not answer well', () => {
    const limits = new ReceiverLimits();
    limits.enter('down');
    limits.note('down', false);
    limits.leave('down');
    expect(fill(limits, 'down')).toBe(4);
    expect(fill(limits, 'other')).toBe(16);
    limits.note('down', true);
    expect(limits.enter('down')).toBe(true);
  });

  it('count deliveries in flight only', () => {
    const limits = new ReceiverLimits();
    limits.note('down', false);
    for (let round = 0; round < 3; round++) {
      expect(fill(limits, 'down')).toBe(4);
      for (let left = 0; left < 4; left++) limits.leave('down');
    }
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GRACE_MS } from '../starter/rules.ts';
import { decideSlot, firstSlot, timingOf } from './rules.ts';

const HOURLY = { cron: '0 * * * *', timezone: 'UTC' };
const HOUR_MS = 60 * 60_000;
const NOON = Date.parse('2026-06-01T12:00:00Z');

describe('what is asked for', () => {
  it('is a pattern in a zone, or one moment', () => {
    expect(timingOf({ workflowId: 'w', cron: '0 * * * *' })).toEqual(HOURLY);
    expect(timingOf({ workflowId: 'w', runAt: '2026-06-01T14:00:00+02:00' })).toEqual({ runAt: NOON });
  });

  it.each([
    ['cron', {}],
    ['cron', { cron: '0 * * * *', runAt: '2026-06-01T12:00:00Z' }],
    ['cron', { cron: '0 99 * * *' }],
    ['timezone', { cron: '0 * * * *', timezone: 'Mars/Olympus' }],
    ['runAt', { runAt: '2026-06-01T23:59:60Z' }],
  ])('is refused, naming %s: %o', (field, spec) => {
    expect(timingOf({ workflowId: 'w', ...spec })).toMatchObject({ refused: 'validation_error', details: { field } });
  });

  it('begins with the next slot', () => {
    expect(firstSlot(HOURLY, NOON)).toBe(NOON + HOUR_MS);
    expect(firstSlot({ runAt: NOON }, NOON - 1)).toBe(NOON);
  });

  it('may have been due a moment ago, not earlier', () => {
    expect(firstSlot({ runAt: NOON }, NOON + GRACE_MS - 1)).toBe(NOON);
    expect(firstSlot({ runAt: NOON }, NOON + GRACE_MS)).toMatchObject({ details: { field: 'runAt' } });
  });

  it('does not begin with what was dealt with, even if the clock says that it is still to come', () => {
    expect(firstSlot({ runAt: NOON }, NOON + 1, NOON)).toMatchObject({ details: { field: 'runAt' } });
    expect(firstSlot(HOURLY, NOON - 1, NOON)).toBe(NOON + HOUR_MS);
  });

  it('may not be never, nor too far away', () => {
    expect(firstSlot({ cron: '0 0 30 2 *', timezone: 'UTC' }, NOON)).toMatchObject({ refused: 'validation_error' });
    const far = { runAt: Date.parse('2037-01-01T00:00:00Z') };
    expect(firstSlot(far, NOON)).toMatchObject({ refused: 'schedule_horizon_exceeded' });
  });
});

describe('when its time has come, a schedule', () => {
  it.each(['skip', 'once'] as const)('runs, a little late too, and moves on (%s)', (missed) => {
    for (const late of [0, GRACE_MS]) {
      expect(decideSlot(HOURLY, missed, NOON, NOON + late)).toEqual({ slot: NOON, isDue: true, next: NOON + HOUR_MS });
    }
  });

  it('that was missed runs once, or not at all, and goes on with the next slot', () => {
    const now = NOON + 5.5 * HOUR_MS;
    const settled = { slot: NOON + 5 * HOUR_MS, next: NOON + 6 * HOUR_MS };
    expect(decideSlot(HOURLY, 'skip', NOON, now)).toEqual({ ...settled, isDue: false });
    expect(decideSlot(HOURLY, 'once', NOON, now)).toEqual({ ...settled, isDue: true });
  });

  it('that was missed before is on time again when its latest slot is', () => {
    const now = NOON + 5 * HOUR_MS + 1_000;
    const settled = { slot: NOON + 5 * HOUR_MS, isDue: true, next: NOON + 6 * HOUR_MS };
    expect(decideSlot(HOURLY, 'skip', NOON, now)).toEqual(settled);
  });

  it('of one moment is over, run or not', () => {
    expect(decideSlot({ runAt: NOON }, 'skip', NOON, NOON + 1)).toEqual({ slot: NOON, isDue: true, next: undefined });
    expect(decideSlot({ runAt: NOON }, 'skip', NOON, NOON + HOUR_MS)).toMatchObject({ isDue: false, next: undefined });
    expect(decideSlot({ runAt: NOON }, 'once', NOON, NOON + HOUR_MS)).toMatchObject({ isDue: true, next: undefined });
  });

  it('never deals with a slot twice, nor with the past again', () => {
    const lateness = fc.array(fc.integer({ min: 0, max: 10 * HOUR_MS }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(lateness, fc.constantFrom('skip' as const, 'once' as const), (delays, missed) => {
        let awaited = NOON;
        let last = 0;
        for (const delay of delays) {
          const now = awaited + delay;
          const { slot, next } = decideSlot(HOURLY, missed, awaited, now);
          expect(slot).toBeGreaterThan(last);
          expect(slot).toBeLessThanOrEqual(now);
          expect(next).toBeGreaterThan(now);
          last = slot;
          awaited = next!;
        }
      }),
    );
  });
});

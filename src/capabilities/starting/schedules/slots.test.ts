import { Cron } from 'croner';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { cronProblem, isTimeZone, latestSlot, nextSlot, slotCount } from './slots.ts';

/** The slots of a pattern after a moment, in UTC. */
function slotsOf(cron: string, timezone: string, after: string, count: number): string[] {
  const slots: number[] = [];
  while (slots.length < count) slots.push(nextSlot({ cron, timezone }, slots.at(-1) ?? Date.parse(after))!);
  return slots.map((slot) => new Date(slot).toISOString().replace(':00.000Z', 'Z'));
}

describe('the slots of a pattern', () => {
  it.each<[string, string, string, string, string[]]>([
    [
      'a fixed time that spring leaves out is due where the clock jumps',
      '30 2 * * *',
      'America/New_York',
      '2026-03-07T12:00Z',
      ['2026-03-08T07:00Z', '2026-03-09T06:30Z'],
    ],
    [
      'the same in Europe',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
    ],
    [
      'a fixed time that autumn brings twice is due the first time',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-10-24T12:00Z',
      ['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
    ],
    [
      'the same in America',
      '30 1 * * *',
      'America/New_York',
      '2026-10-31T12:00Z',
      ['2026-11-01T05:30Z', '2026-11-02T06:30Z'],
    ],
    [
      'every half hour goes on evenly through spring',
      '*/30 * * * *',
      'Europe/Berlin',
      '2026-03-29T00:15Z',
      ['2026-03-29T00:30Z', '2026-03-29T01:00Z', '2026-03-29T01:30Z', '2026-03-29T02:00Z'],
    ],
    [
      'and through autumn, both times',
      '*/30 * * * *',
      'Europe/Berlin',
      '2026-10-25T00:15Z',
      ['2026-10-25T00:30Z', '2026-10-25T01:00Z', '2026-10-25T01:30Z', '2026-10-25T02:00Z'],
    ],
    [
      'a clock that jumps by half an hour',
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-02T20:00Z',
      ['2026-10-03T15:30Z', '2026-10-04T15:15Z'],
    ],
    [
      'and back by half an hour',
      '45 1 * * *',
      'Australia/Lord_Howe',
      '2026-04-03T20:00Z',
      ['2026-04-04T14:45Z', '2026-04-05T15:15Z'],
    ],
    [
      'a midnight that there is not',
      '0 0 * * *',
      'Africa/Cairo',
      '2026-04-23T00:00Z',
      ['2026-04-23T22:00Z', '2026-04-24T21:00Z'],
    ],
    [
      'a day that Samoa left out',
      '0 9 * * *',
      'Pacific/Apia',
      '2011-12-29T00:00Z',
      ['2011-12-29T19:00Z', '2011-12-30T19:00Z'],
    ],
    ['a date on that day', '0 9 30 12 *', 'Pacific/Apia', '2011-12-01T00:00Z', ['2012-12-29T19:00Z']],
    [
      'leap days',
      '0 0 29 2 *',
      'UTC',
      '2026-01-01T00:00Z',
      ['2028-02-29T00:00Z', '2032-02-29T00:00Z', '2036-02-29T00:00Z'],
    ],
    ['leap days around a century without one', '0 0 29 2 *', 'UTC', '2096-03-01T00:00Z', ['2104-02-29T00:00Z']],
    [
      'the last day of months',
      '0 6 L * *',
      'UTC',
      '2027-12-15T00:00Z',
      ['2027-12-31T06:00Z', '2028-01-31T06:00Z', '2028-02-29T06:00Z'],
    ],
    [
      'the 31st, where there is one',
      '0 6 31 * *',
      'UTC',
      '2026-03-01T00:00Z',
      ['2026-03-31T06:00Z', '2026-05-31T06:00Z'],
    ],
    [
      'the last minute of a year',
      '59 23 31 12 *',
      'Asia/Tokyo',
      '2026-12-31T14:58Z',
      ['2026-12-31T14:59Z', '2027-12-31T14:59Z'],
    ],
    [
      'the first minute of a year in a zone of quarter hours',
      '0 0 1 1 *',
      'Asia/Kathmandu',
      '2026-06-01T00:00Z',
      ['2026-12-31T18:15Z'],
    ],
  ])('%s', (_what, cron, timezone, after, slots) => {
    expect(slotsOf(cron, timezone, after, slots.length)).toEqual(slots);
  });

  it('have seconds where there are six fields', () => {
    const timing = { cron: '*/20 59 23 31 12 *', timezone: 'UTC' };
    const eve = Date.parse('2026-12-31T23:59:21.500Z');
    expect(nextSlot(timing, eve)).toBe(Date.parse('2026-12-31T23:59:40Z'));
    expect(latestSlot(timing, eve)).toBe(Date.parse('2026-12-31T23:59:20Z'));
    expect(latestSlot(timing, Date.parse('2026-12-31T23:59:40Z'))).toBe(Date.parse('2026-12-31T23:59:40Z'));
  });

  it('are on days of the month and on days of the week where a pattern names both', () => {
    const days = slotsOf('7 7 1 * 1', 'UTC', '2026-02-20T00:00:00Z', 4);
    expect(days).toEqual(['2026-02-23T07:07Z', '2026-03-01T07:07Z', '2026-03-02T07:07Z', '2026-03-09T07:07Z']);
  });

  it('can be none at all', () => {
    expect(nextSlot({ cron: '0 0 30 2 *', timezone: 'UTC' }, 0)).toBeUndefined();
  });

  const timings = fc.record({
    cron: fc.constantFrom(
      '30 2 * * *',
      '*/30 * * * *',
      '0 0 * * *',
      '15 1-3 * * 0',
      '10,50 1,2 * 3,4,10,11 *',
      '7 7 1 * 1',
      '30 9 1,15,31 * *',
      '0 12 13 * 5',
    ),
    timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo'),
  });
  const moments = fc.integer({ min: Date.parse('2026-01-01'), max: Date.parse('2027-12-31') });

  it('are the same looking back as looking forward', () => {
    fc.assert(
      fc.property(timings, moments, fc.nat({ max: 1_000_000 }), (timing, moment, part) => {
        const slot = nextSlot(timing, moment)!;
        const following = nextSlot(timing, slot)!;
        expect(following).toBeGreaterThan(slot);
        const between = slot + Math.floor(((following - slot) * part) / 1_000_001);
        expect(latestSlot(timing, between)).toBe(slot);
        expect(nextSlot(timing, between)).toBe(following);
      }),
      { numRuns: 300 },
    );
  });
});

describe('one moment', () => {
  it('is the only slot there is', () => {
    expect([nextSlot({ runAt: 500 }, 499), nextSlot({ runAt: 500 }, 500)]).toEqual([500, undefined]);
    expect([latestSlot({ runAt: 500 }, 499), latestSlot({ runAt: 500 }, 500)]).toEqual([undefined, 500]);
  });
});

describe('what is written down', () => {
  it.each(['* * * * *', '0 9 * * MON-FRI', '*/10 * * * * *', '@daily', '0 0 L * *', '0 12 * * 5#3'])(
    'may be %s',
    (cron) => {
      expect(cronProblem(cron)).toBeUndefined();
    },
  );

  it.each([
    ['61 * * * *', 'minute'],
    ['0 25 * * *', 'hour'],
    ['* * * *', 'parts'],
    ['0 0 0 1 1 * 2027', 'parts'],
    ['every day', 'parts'],
    ['a * * * *', 'illegal'],
    ['*/0 * * * *', 'stepping'],
    ['@reboot', 'not supported'],
    ['2026-01-01T00:00:00Z', 'use runAt'],
  ])('is no pattern: %s', (cron, why) => {
    expect(cronProblem(cron)).toContain(why);
  });

  it('names a zone that there is', () => {
    expect(['UTC', 'Europe/Berlin', 'Etc/GMT+1'].filter(isTimeZone)).toHaveLength(3);
    expect(['Mars/Olympus', '', '+02:00', ' UTC', 'Europe/Berlin '].filter(isTimeZone)).toEqual([]);
  });
});

describe('the number of slots', () => {
  const MONDAY = Date.parse('2026-11-16T12:00:00Z');
  const WEEK_MS = 7 * 24 * 60 * 60_000;

  it.each([
    ['30 8 * * *', 'Europe/Berlin', 7],
    ['0 9 * * 1-5', 'UTC', 5],
    ['0 0 30 2 *', 'UTC', 0],
    ['* * * * * *', 'UTC', 7 * 24 * 3_600],
    ['*/2 * * * *', 'Asia/Kolkata', 7 * 24 * 30],
    ['* 9-17 * * 1-5', 'UTC', 5 * 9 * 60],
    ['*/20 0-9 9-16 * * 1-5', 'Asia/Kolkata', 5 * 8 * 10 * 3],
  ])('of %s in %s is found within a week', (cron, timezone, count) => {
    expect(slotCount({ cron, timezone }, MONDAY, MONDAY + WEEK_MS)).toBe(count);
  });

  it('is found with a bounded amount of work, however dense the pattern', () => {
    const nextRun = vi.spyOn(Cron.prototype, 'nextRun');
    slotCount({ cron: '* * * * * *', timezone: 'Europe/Berlin' }, MONDAY, MONDAY + WEEK_MS);
    expect(nextRun.mock.calls.length).toBeLessThan(600);
    nextRun.mockRestore();
  });

  it('of one moment is one, or none', () => {
    expect([slotCount({ runAt: 500 }, 499, 500), slotCount({ runAt: 500 }, 500, 900)]).toEqual([1, 0]);
  });
});

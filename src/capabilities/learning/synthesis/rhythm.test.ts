import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextSlot } from '../../starting/schedules/door.ts';
import { type RhythmRules, rhythmOf } from './rhythm.ts';

const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];
const rules: RhythmRules = { supportMin: 3, periodMinMs: HOUR_MS, timezones: ['UTC'] };
const at = (text: string): number => Date.parse(text);
const days = (...names: string[]): number[] => names.map((name) => at(`2026-03-${name}Z`));

describe('a rhythm', () => {
  it.each<[string, number[], string]>([
    ['every day at nine', days('02T09:01', '03T08:58', '04T09:03'), '0 9 * * *'],
    ['every day, though not on one', days('02T09:01', '03T08:58', '04T09:03', '06T09:00', '07T09:00'), '0 9 * * *'],
    [
      'from Monday to Friday',
      days('05T17:30', '06T17:30', '09T17:30', '10T17:31', '11T17:29', '12T17:30', '13T17:30'),
      '30 17 * * 1-5',
    ],
    ['every Monday', days('02T07:15', '09T07:15', '16T07:14'), '15 7 * * 1'],
    ['around midnight', days('02T23:58', '04T00:03', '04T23:59', '05T23:57'), '0 0 * * *'],
    ['every two hours, at twenty past', days('02T01:20', '02T03:19', '02T05:21'), '20 1-23/2 * * *'],
    [
      'twice a day',
      days('02T09:01', '02T17:00', '03T08:58', '03T17:03', '04T09:03', '04T16:59', '05T09:00'),
      '0 9,17 * * *',
    ],
    [
      'twice on working days, at minutes that are nearly the same',
      days('05T08:55', '05T17:05', '06T08:55', '06T17:05', '09T08:56', '09T17:04', '10T08:54', '10T17:05', '11T08:55'),
      '0 9,17 * * 1-5',
    ],
    [
      'before and after midnight',
      days('02T12:00', '03T00:02', '03T12:01', '03T23:58', '04T12:00', '05T00:00'),
      '0 0,12 * * *',
    ],
    ['every hour', days('02T01:00', '02T02:02', '02T02:59', '02T04:00'), '0 * * * *'],
  ])('is found: %s', (_name, moments, cron) => {
    expect(rhythmOf(moments, rules)).toMatchObject({ cron, timezone: 'UTC', kept: moments.length });
  });

  it.each<[string, number[]]>([
    ['two moments', days('02T09:00', '03T09:00')],
    ['any time of day', days('02T09:00', '03T15:00', '04T02:00', '05T21:00')],
    ['the same time on days that form no pattern', days('02T09:00', '03T09:00', '07T09:00', '19T09:00')],
    ['more often than people would mind', days('02T09:00', '02T09:10', '02T09:20', '02T09:30')],
    ['a period that cron cannot say', days('02T00:00', '02T17:00', '03T10:00', '04T03:00')],
    ['once a day at any hour', days('02T08:10', '03T09:40', '04T08:50', '05T10:05', '06T09:00')],
    [
      'twice a day at minutes that one expression cannot say',
      days('02T09:00', '02T17:30', '03T09:00', '03T17:30', '04T09:00', '04T17:30'),
    ],
    [
      'twice a day, on different days',
      days('02T09:00', '03T09:00', '04T09:00', '10T17:00', '11T17:00', '12T17:00', '16T09:00'),
    ],
    ['all at once', days('02T09:00', '02T09:00', '02T09:00')],
  ])('is not found: %s', (_name, moments) => {
    expect(rhythmOf(moments, rules)).toBeUndefined();
  });

  it('follows local time: it is the same before and after daylight saving begins', () => {
    const berlin = days('27T08:00', '28T08:00', '29T07:00', '30T07:00', '31T07:00');
    const zones = { ...rules, timezones: ['Europe/Berlin', 'UTC'] };
    expect(rhythmOf(berlin, zones)).toMatchObject({ cron: '0 9 * * *', timezone: 'Europe/Berlin', kept: 5 });
  });

  it('is kept across daylight saving time although nobody said where people live', () => {
    const berlin = days('25T08:00', '26T08:00', '27T08:00', '28T08:00', '29T07:00', '30T07:00', '31T07:00');
    expect(rhythmOf(berlin, rules)).toMatchObject({ cron: '0 9 * * *', timezone: 'Europe/Berlin', kept: 7 });
    const newYork = days('05T14:00', '06T14:00', '07T14:00', '08T13:00', '09T13:00', '10T13:00');
    expect(rhythmOf(newYork, rules)).toMatchObject({ cron: '0 9 * * *', timezone: 'America/New_York', kept: 6 });
  });

  it('is that of the latest moments, if these are at least half of all', () => {
    const before = days('01T03:11', '01T14:00', '01T15:10');
    const regular = days('02T09:00', '03T09:00', '04T09:00', '05T09:00');
    expect(rhythmOf([...before, ...regular], rules)).toMatchObject({ cron: '0 9 * * *', kept: 4 });
    const more = before.flatMap((time) => [time, time + MINUTE_MS, time + 2 * MINUTE_MS]);
    expect(rhythmOf([...more, ...regular], rules)).toBeUndefined();
  });

  it('of seconds is found only if the minimum period allows it', () => {
    const quick = [0, 690, 1_420, 2_100].map((ms) => at('2026-03-02T09:00Z') + ms);
    expect(rhythmOf(quick, { ...rules, periodMinMs: 500 })?.cron).toBe('* * * * * *');
    expect(rhythmOf(quick, rules)).toBeUndefined();
  });
});

describe('for all even moments', () => {
  const moments = fc
    .record({
      start: fc.integer({ min: at('2026-01-01T00:00Z'), max: at('2026-12-01T00:00Z') }),
      periodMs: fc.constantFrom(HOUR_MS, 2 * HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS),
      jitter: fc.array(fc.double({ min: -0.04, max: 0.04, noNaN: true }), { minLength: 4, maxLength: 40 }),
    })
    .map(({ start, periodMs, jitter }) =>
      jitter.map((off, index) => Math.round(start + index * periodMs + off * Math.min(periodMs, HOUR_MS))),
    );

  it('a schedule of the rhythm fires as often as people did, and near to when they did', () => {
    fc.assert(
      fc.property(moments, (starts) => {
        const rhythm = rhythmOf(starts, rules);
        expect(rhythm?.kept).toBe(starts.length);
        const slots: number[] = [];
        for (let from = starts[0]! - 30 * MINUTE_MS; slots.length < starts.length; from = slots.at(-1)!) {
          slots.push(nextSlot(rhythm!, from)!);
        }
        for (const [index, slot] of slots.entries()) {
          expect(Math.abs(slot - starts[index]!)).toBeLessThanOrEqual(10 * MINUTE_MS);
        }
      }),
    );
  });

  it('random moments have no rhythm, but for a few by chance', () => {
    const chance = fc.array(fc.integer({ min: 0, max: 90 * DAY_MS }), { minLength: 12, maxLength: 60 });
    const found = fc.sample(chance, { numRuns: 500, seed: 7 }).filter((starts) =>
      rhythmOf(
        starts.toSorted((a, b) => a - b),
        rules,
      ),
    );
    expect(found.length).toBeLessThanOrEqual(2);
  });
});

import { describe, expect, it } from 'vitest';
import { calendarOf } from './calendar.ts';
import type { StoredPair } from './stored-preview.ts';
import { changeOfPair, summaryOf } from './summary.ts';

const pair = (before: string, after: string, more: object = {}): StoredPair => ({
  sourceRunId: 'run-a',
  runId: 'run-b',
  state: 'done',
  before: { verdict: before as 'pass', status: 'completed' },
  after: { verdict: after as 'pass', status: 'completed' },
  costs: { before: 0.001, after: 0.003 },
  ...more,
});

describe('the result of a preview', () => {
  it('is counted, and said in one sentence', () => {
    const pairs = [
      ...Array.from({ length: 5 }, () => pair('fail', 'pass')),
      pair('pass', 'fail'),
      pair('fail', 'fail'),
    ];
    expect(summaryOf('prompt-template', pairs).sentence).toBe(
      '7 corrected runs: 5 now pass, 1 worse, 1 same, +$0.002 per run',
    );
    expect(summaryOf('agent-pack', [pair('pass', 'undecided'), { sourceRunId: 'c', state: 'not-run' }])).toMatchObject({
      undecided: 1,
      notRun: 1,
      spentUsd: 0.003,
      sentence: '2 runs: 0 now pass, 0 worse, 0 same, 1 undecided, 1 not run, +$0.002 per run',
    });
    expect(summaryOf('agent-pack', [{ sourceRunId: 'c', state: 'waiting' }]).sentence).toBe(
      '1 run: 0 now pass, 0 worse, 0 same, 1 to come',
    );
  });

  it('is worse where a run breaks, even without a verdict', () => {
    const broken = { after: { verdict: 'undecided', status: 'failed' } };
    expect(changeOfPair(pair('undecided', 'undecided', broken))).toBe('worse');
    expect(changeOfPair(pair('undecided', 'pass'))).toBe('undecided');
    expect(changeOfPair({ sourceRunId: 'a', state: 'judging' })).toBeUndefined();
  });
});

describe('a calendar', () => {
  const at = (text: string): number => Date.parse(text);

  it('has each start beside its firing, by the clock of the people, and firings that nobody met', () => {
    const starts = [
      { runId: 'run-1', at: at('2026-10-23T06:34:00Z') },
      { runId: 'run-2', at: at('2026-10-26T07:25:00Z') },
    ];
    const artifact = { workflowId: 'w', cron: '30 8 * * *', timezone: 'Europe/Berlin' };
    const calendar = calendarOf(artifact, starts, at('2026-11-01T00:00:00Z'));
    expect(calendar.starts).toEqual([
      { runId: 'run-1', startedAt: '2026-10-23T06:34:00.000Z', firing: '2026-10-23T06:30:00.000Z', minutesLater: -4 },
      { runId: 'run-2', startedAt: '2026-10-26T07:25:00.000Z', firing: '2026-10-26T07:30:00.000Z', minutesLater: 5 },
    ]);
    expect(calendar.unmatched).toEqual(['2026-10-24T06:30:00.000Z', '2026-10-25T07:30:00.000Z']);
    expect(calendar.next).toHaveLength(10);
    expect(calendar.next[0]).toBe('2026-11-01T07:30:00.000Z');
  });

  it('of a dense schedule has a firing beside the newest start too', () => {
    const starts = ['2026-10-26T07:25:20Z', '2026-10-23T06:34:00Z'].map((text) => ({ runId: text, at: at(text) }));
    const artifact = { workflowId: 'w', cron: '*/2 * * * *' };
    const calendar = calendarOf(artifact, starts, at('2026-11-01T00:00:00Z'));
    expect(calendar.starts).toMatchObject([
      { firing: '2026-10-26T07:26:00.000Z', minutesLater: 1 },
      { firing: '2026-10-23T06:34:00.000Z', minutesLater: 0 },
    ]);
    expect(calendar.unmatched).toHaveLength(50);
    expect(calendar.unmatched[0]).toBe('2026-10-23T09:36:00.000Z');
  });

  it('of a single firing has that one, and of a past one none', () => {
    const once = { workflowId: 'w', runAt: '2026-12-24T18:00:00Z' };
    expect(calendarOf(once, [], at('2026-11-01T00:00:00Z')).next).toEqual(['2026-12-24T18:00:00.000Z']);
    expect(calendarOf(once, [], at('2027-01-01T00:00:00Z')).next).toEqual([]);
  });
});

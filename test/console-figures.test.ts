import { describe, expect, it } from 'vitest';
import { figuresOf, stepsOf } from '../console/quality/figures.ts';

const run = (status: 'completed' | 'failed' | 'cancelled' | 'running', ms: number) => ({
  runId: `run-${ms}`,
  workflowId: 'w',
  workflowVersion: 1,
  status,
  createdAt: new Date(0).toISOString(),
  updatedAt: new Date(ms).toISOString(),
  ...(status === 'running' ? {} : { endedAt: new Date(ms).toISOString() }),
});

describe('the figures of runs', () => {
  it('count what ended, and compare what succeeded with what failed', () => {
    const figures = figuresOf([
      run('completed', 10),
      run('completed', 20),
      run('failed', 30),
      run('cancelled', 40),
      run('running', 1),
    ]);
    expect(figures).toEqual({ ended: 4, failed: 1, successRate: 2 / 3, p50Ms: 30, p95Ms: 40 });
  });

  it('say nothing about no runs', () => {
    expect(figuresOf([])).toEqual({ ended: 0, failed: 0, successRate: null, p50Ms: null, p95Ms: null });
  });
});

describe('the steps of a span', () => {
  it('begin where the host begins its buckets', () => {
    const [since, until] = [Date.parse('2026-01-07T10:20:00Z'), Date.parse('2026-01-15T00:00:00Z')];
    const first = (bucket: 'hour' | 'day' | 'week') => new Date(stepsOf(since, until, bucket)[0]!).toISOString();
    expect(first('hour')).toBe('2026-01-07T10:00:00.000Z');
    expect(first('day')).toBe('2026-01-07T00:00:00.000Z');
    expect(first('week')).toBe('2026-01-05T00:00:00.000Z');
    expect(stepsOf(since, until, 'week')).toHaveLength(2);
  });
});

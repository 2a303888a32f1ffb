import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../client/index.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import { runLines } from './run-report.ts';
import { plain } from './text.ts';

const RUN = {
  runId: 'run-1',
  workflowId: 'w',
  workflowVersion: 1,
  status: 'failed',
  createdAt: '2026-01-02T00:00:00.000Z',
  startedAt: '2026-01-01T00:00:00.000Z',
  endedAt: '2026-01-02T00:00:05.000Z',
};

function report(more: object, events: readonly object[] = [], tasks?: readonly object[]): string[] {
  const sources = { events, edges: [], tasks } as unknown as Parameters<typeof runLines>[2];
  return runLines({ paint: plain } as Parameters<typeof runLines>[0], { ...RUN, ...more } as RunSnapshot, sources);
}

const logged = (level: string, message: string, nodeId = 'a'): Partial<RunEvent> =>
  ({ type: 'log.appended', nodeId, payload: { level, message } }) as Partial<RunEvent>;

describe('the report of a run', () => {
  it('repeats warnings, each once, and names the first ones when there are many', () => {
    const lines = report({}, [logged('warn', 'slow'), logged('info', 'fine'), logged('warn', 'slow')]);
    expect(lines.slice(0, 3)).toEqual(['failed', 'warning at a: slow (2 times)', '']);
    const many = Array.from({ length: 12 }, (_, index) => logged('error', `broken ${index}`));
    expect(report({}, many).slice(1, 12)).toEqual([
      ...Array.from({ length: 10 }, (_, index) => `error at a: broken ${index}`),
      '… 2 more warnings; see capstan events run-1',
    ]);
  });

  it('names the node of an error unless the message does', () => {
    const error = { code: 'bad', message: 'That is bad.' };
    const failed = (message: string) => ({
      error: { ...error, message },
      nodeStates: { a: { status: 'failed', error: { ...error, message } } },
    });
    expect(report(failed('That is bad.'))[1]).toBe('That is bad. (bad), at the node a');
    expect(report(failed('The node "a" is bad.'))[1]).toBe('The node "a" is bad. (bad)');
  });

  it('says who decided and why', () => {
    const received = {
      type: 'approval.received',
      causationId: 'int-1',
      payload: { nodeId: 'gate', action: 'reject', decidedBy: 'ada' },
    };
    const resolved = {
      type: 'interrupt.resolved',
      causationId: 'int-1',
      payload: { resumeValue: { action: 'reject', reason: 'too expensive' }, resolvedBy: 'ada' },
    };
    expect(report({}, [received, resolved])).toContain('decisions  gate: reject by ada: too expensive');
  });

  it('says of a fork what it began with, and counts its time from its own start', () => {
    const lines = report({ forkedFrom: { runId: 'run-0', fromSeq: 6, mode: 'branch' } });
    expect(lines).toContain('fork      branch of run-0, from event 6');
    expect(lines).toContain('time      2026-01-02T00:00:00.000Z, took 5 s');
    const forks = Array.from({ length: 6 }, (_, index) => ({ runId: `run-${index}`, status: 'completed' }));
    expect(report({ forks }).find((line) => line.startsWith('forks'))).toMatch(/run-4 \(completed\), 1 more$/);
  });

  it('says of a node that it waits for a worker, or which one has it', () => {
    const nodeStates = { a: { status: 'running' } };
    const noted = [
      { type: 'node.started', nodeId: 'a', payload: {} },
      logged('info', 'waiting for a worker of acme.x'),
    ];
    const task = (state: string) => [{ nodeId: 'a', state, worker: 'bo' }];
    const last = (lines: readonly string[]) => lines.at(-1);
    expect(last(report({ nodeStates }, noted, task('waiting')))).toBe(
      'a  running  waiting for a worker of acme.x; see capstan workers list',
    );
    expect(last(report({ nodeStates }, noted, task('leased')))).toBe('a  running  a worker has it: bo');
    expect(last(report({ nodeStates }, noted, []))).toBe('a  running');
  });
});

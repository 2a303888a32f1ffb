import { describe, expect, it } from 'vitest';
import type { Goal } from '../protocol/learning/goals.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import { evidenceLines, type GoalSources, goalLines } from './goal-report.ts';

const GOAL = {
  id: 'goal-1',
  objective: 'Nothing is overdue',
  state: 'active',
  completion: { check: 'host', lastVerdict: { satisfied: false, runId: 'run-1' } },
  continuation: { mode: 'schedule', armRef: 'sch-1' },
  bounds: { maxLoopIterations: 7, maxCostUsd: 2, runTimeoutMs: 7_200_000 },
  progress: { iterations: 1 },
} as unknown as Goal;

const RUN = {
  status: 'completed',
  nodeStates: { count: { status: 'completed', outputs: { overdue: [3] } } },
  variables: { limit: 1 },
} as unknown as RunSnapshot;

const PLAN = { criteria: [] };

describe('the report of a goal', () => {
  it('says how it stands, when it goes on and what bounds it', () => {
    const history = { standing: { status: 'cannot-start', reason: 'workflow-gone' }, costUsd: 0, items: [] };
    const lines = goalLines(GOAL, { history, plan: PLAN, nextAt: '2026-01-01T03:00:00Z' } as GoalSources);
    expect(lines).toContain('standing      nothing can start a run (workflow-gone)');
    expect(lines).toContain('next run      2026-01-01T03:00:00Z');
    expect(lines).toContain('bounds        7 runs, 2 USD, 2 h');
    expect(lines).toContain('last verdict  not satisfied by run-1');
  });

  it('says of a goal that is worked on by hand how to start a run, unless it is closed', () => {
    const manual = { ...GOAL, continuation: { mode: 'manual' } } as unknown as Goal;
    expect(goalLines(manual, { plan: PLAN })).toContain('next run      by hand: capstan goals run goal-1');
    expect(goalLines({ ...manual, state: 'satisfied' }, { plan: PLAN }).join('\n')).not.toContain('by hand');
  });

  it('says of a goal without a plan that it needs one first, whatever starts its runs', () => {
    for (const mode of ['manual', 'schedule']) {
      const goal = { ...GOAL, continuation: { mode } } as unknown as Goal;
      expect(goalLines(goal, { nextAt: '2026-01-01T03:00:00Z' })).toContain(
        'next run      none without a plan: capstan goals plan goal-1 --workflow <id> --criterion key=expression',
      );
    }
  });

  it('shows what the run had where a criterion looks', () => {
    const plan = { criteria: [{ key: 'none', expression: 'outputs.count.overdue.size() < variables.limit' }] };
    const evidence = [
      { key: 'none', met: false },
      { key: 'kind', met: true, detail: 'friendly' },
    ];
    expect(evidenceLines({ evidence }, plan, RUN)).toEqual([
      'none: not met; outputs.count.overdue.size() < variables.limit; where outputs.count.overdue is [3], variables.limit is 1',
      'kind: met; friendly',
    ]);
    expect(evidenceLines({ evidence: [], undecided: 'no answer' }, undefined, undefined)).toEqual([
      'undecided: no answer',
    ]);
  });
});

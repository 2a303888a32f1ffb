import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRefusal, type Refusal } from '../../protocol/errors.ts';
import {
  abandon,
  escalate,
  expire,
  type GoalProgress,
  hasStopped,
  isClosed,
  judge,
  newProgress,
  pause,
  reopen,
  resume,
  startRun,
} from './goal.ts';

/**
 * Goal: check the invariants at the top of `goal.ts`. Method: generated histories of actions by people, schedules,
 * judges and time.
 */

const STANDSTILL_MAX = 3;

type Action =
  | { readonly do: 'start'; readonly atOnce: number }
  | {
      readonly do: 'judge';
      readonly satisfied: boolean;
      readonly isUndecided: boolean;
      readonly costUsd: number;
      readonly open: string[];
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'pause' | 'resume' | 'abandon' | 'escalate' | 'reopen' | 'expire' };

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('start' as const), atOnce: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('judge' as const),
      satisfied: fc.boolean(),
      isUndecided: fc.boolean(),
      costUsd: fc.constantFrom(0, 0.1, 0.7),
      open: fc.subarray(['a', 'b']),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 500 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'pause' as const,
        'resume' as const,
        'abandon' as const,
        'escalate' as const,
        'reopen' as const,
        'expire' as const,
      ),
    }),
  },
);

const bounds = fc
  .record({
    maxLoopIterations: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
    maxCostUsd: fc.option(fc.constantFrom(0, 0.3, 2), { nil: undefined }),
    runTimeoutMs: fc.option(fc.integer({ min: 0, max: 2_000 }), { nil: undefined }),
  })
  .map((all) => JSON.parse(JSON.stringify(all)) as GoalProgress['bounds']);

interface Step {
  readonly action: Action;
  readonly before: GoalProgress;
  readonly after: GoalProgress;
  readonly now: number;
}

/** Applies actions in order; a refused one changes nothing. */
function live(limits: GoalProgress['bounds'], actions: readonly Action[]): Step[] {
  let goal = newProgress(limits, 0);
  let now = 0;
  return actions.map((each) => {
    if (each.do === 'wait') now += each.ms;
    const outcome = act(goal, each, now);
    const step = { action: each, before: goal, after: isRefusal(outcome) ? goal : outcome, now };
    goal = step.after;
    return step;
  });
}

function act(goal: GoalProgress, each: Action, now: number): GoalProgress | Refusal {
  switch (each.do) {
    case 'start':
      return startRun(goal, now, each.atOnce);
    case 'judge':
      // Only runs that were started can be judged.
      return goal.iterations < goal.started
        ? judge(goal, { ...each, isBudgetExhausted: false }, now, STANDSTILL_MAX)
        : goal;
    case 'pause':
      return pause(goal);
    case 'resume':
      return resume(goal, now);
    case 'abandon':
      return abandon(goal);
    case 'escalate':
      return escalate(goal);
    case 'reopen':
      return reopen(goal, now);
    case 'expire':
      return expire(goal, now);
    case 'wait':
      return goal;
  }
}

function everyHistory(invariant: (steps: readonly Step[], limits: GoalProgress['bounds']) => void): void {
  const check = (limits: GoalProgress['bounds'], actions: readonly Action[]): void =>
    invariant(live(limits, actions), limits);
  fc.assert(fc.property(bounds, fc.array(action, { maxLength: 60 }), check), { numRuns: 300 });
}

describe('in every history of a goal', () => {
  it('the goal starts no more runs than its bound allows', () =>
    everyHistory((steps, { maxLoopIterations = Number.POSITIVE_INFINITY }) => {
      for (const { after } of steps) expect(after.started).toBeLessThanOrEqual(maxLoopIterations);
    }));

  it('the goal starts no run after it stopped, while it is paused, or after its deadline', () =>
    everyHistory((steps) => {
      for (const { before, after, now } of steps.filter((step) => step.after.started > step.before.started)) {
        expect(before).toMatchObject({ state: 'active', isPaused: false });
        expect(now).toBeLessThan(after.deadlineAt ?? Number.POSITIVE_INFINITY);
      }
    }));

  it('only a verdict satisfies it', () =>
    everyHistory((steps) => {
      for (const { action: each, before, after } of steps) {
        if (after.state === 'satisfied' && before.state !== 'satisfied') {
          expect(each).toMatchObject({ do: 'judge', satisfied: true });
        }
      }
    }));

  it('a closed goal does not change', () =>
    everyHistory((steps) => {
      for (const { before, after } of steps) if (isClosed(before)) expect(after).toEqual(before);
    }));

  it('each stop is reported once: what follows a stop is the end of a goal that waited for a person', () =>
    everyHistory((steps) => {
      const told = steps.flatMap(({ before, after }) => {
        const goesOn = before.state === 'escalated' && after.state === 'active';
        return [...(goesOn ? ['goes on'] : []), ...(hasStopped(before, after) ? [after.state] : [])];
      });
      const ends = told.filter((each) => !['goes on', 'escalated'].includes(each));
      expect(ends.length).toBeLessThanOrEqual(1);
      expect(told.filter((each, index) => each === 'escalated' && told[index + 1] === 'escalated')).toEqual([]);
    }));

  it('a deadline that has passed closes the goal, also while it is paused or waits for a person', () =>
    everyHistory((steps) => {
      for (const { action: each, before, after, now } of steps) {
        if (each.do !== 'expire' || isClosed(before)) continue;
        expect(after.state === 'bound-exceeded').toBe(now >= (before.deadlineAt ?? Number.POSITIVE_INFINITY));
      }
    }));

  it('with a cost limit, runs are sequential', () =>
    everyHistory((steps, { maxCostUsd }) => {
      if (maxCostUsd === undefined) return;
      for (const { after } of steps) expect(after.started - after.iterations).toBeLessThanOrEqual(1);
    }));

  it('an unsatisfied verdict closes the goal exactly when a bound is reached', () =>
    everyHistory((steps, limits) => {
      for (const { action: each, before, after, now } of steps) {
        if (each.do !== 'judge' || before === after || each.satisfied) continue;
        const { maxLoopIterations = Number.POSITIVE_INFINITY, maxCostUsd = Number.POSITIVE_INFINITY } = limits;
        const isOver =
          after.iterations >= maxLoopIterations ||
          (after.costUsd >= maxCostUsd && after.costUsd > 0) ||
          now >= (after.deadlineAt ?? Number.POSITIVE_INFINITY);
        expect(after.state === 'bound-exceeded').toBe(isOver);
      }
    }));
});

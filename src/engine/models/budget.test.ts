import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import type { BudgetPolicy, ProviderUsage } from '../../protocol/ai/models.ts';
import { isChildSlotTaken } from '../run/run.ts';
import { TestRun } from '../testing.ts';
import { allowanceOf, childBudget, refuseCall, spendingReportOf } from './budget.ts';

const usage = (tokens: number, costEstimateUsd = 0): ProviderUsage => ({
  provider: 'p',
  model: 'm',
  inputTokens: tokens,
  outputTokens: 0,
  costEstimateUsd,
  nodeId: 'a',
});

/** A run with a budget whose only node has started. */
function begun(budget: BudgetPolicy): TestRun {
  const story = new TestRun(workflow([node('a')]), { configurable: { budget } });
  story.step();
  story.step();
  return story;
}

function spendOn(story: TestRun, ...calls: ProviderUsage[]): TestRun {
  for (const payload of calls) {
    if (story.run.failure) break;
    story.record({ type: 'provider.usage', nodeId: 'a', payload });
    story.step();
  }
  return story;
}

const budgetEventsOf = ({ events }: TestRun): string[] =>
  events.map(({ type }) => type).filter((type) => /budget|cap/.test(type));

describe('a budget', () => {
  it('is reported first, with its limits only', () => {
    const { events } = begun({ maxTokens: 10, thresholdPercent: 80, modelDeny: ['x'] });
    expect(events[1]).toMatchObject({
      type: 'budget.reserved',
      payload: { effectiveBudget: { maxTokens: 10 }, scope: 'run' },
    });
  });

  it('is exhausted at its limit and breached beyond it', () => {
    expect(budgetEventsOf(spendOn(begun({ maxTokens: 10 }), usage(4), usage(6)))).toEqual([
      'budget.reserved',
      'budget.consumed',
      'budget.consumed',
      'budget.exhausted',
    ]);
    const story = spendOn(begun({ maxTokens: 10 }), usage(11));
    expect(story.events.at(-1)).toMatchObject({ payload: { kind: 'budget-tokens', limit: 10, observed: 11 } });
    story.step();
    expect(story.run).toMatchObject({ ended: 'failed', error: { code: 'budget_exhausted' } });
  });

  it('warns once per dimension', () => {
    const story = spendOn(
      begun({ maxTokens: 100, maxCostUsd: 1, thresholdPercent: 50 }),
      usage(50, 0.4),
      usage(1, 0.2),
    );
    const crossings = story.events.filter(({ type }) => type === 'budget.threshold.crossed');
    expect(crossings.map(({ payload }) => payload)).toEqual([
      { dimension: 'tokens', consumed: 50, limit: 100, percent: 50 },
      { dimension: 'cost', consumed: 0.6, limit: 1, percent: 50 },
    ]);
  });

  it('counts retries of nodes', () => {
    const story = begun({ maxRetries: 0 });
    const lastError = { code: 'c', message: 'm' };
    story.record({ type: 'node.retried', nodeId: 'a', payload: { nodeId: 'a', attempt: 1, delayMs: 0, lastError } });
    story.step();
    expect(story.events.at(-1)).toMatchObject({ payload: { kind: 'budget-retries', limit: 0, observed: 1 } });
  });

  it('allows a call what other calls have left', () => {
    const story = spendOn(begun({ maxTokens: 100, maxCostUsd: 1, modelAllow: ['m*'] }), usage(30, 0.25));
    expect(allowanceOf(story.run)).toEqual({ tokens: 70, costUsd: 0.75, modelAllow: ['m*'] });
    expect(allowanceOf(new TestRun(workflow([node('a')])).run)).toBeUndefined();
  });

  it('refuses a call that needs more, and reports it once', () => {
    const story = spendOn(begun({ maxTokens: 10 }), usage(8));
    const events = refuseCall(story.run, 'a', 'tokens', 3);
    expect(events.map(({ payload }) => payload)).toEqual([
      { dimension: 'tokens', consumed: 8, limit: 10 },
      { kind: 'budget-tokens', limit: 10, observed: 11, nodeId: 'a' },
    ]);
    story.record(events[0]!);
    expect(refuseCall(story.run, 'a', 'tokens', 3)).toHaveLength(1);
  });

  describe('shared with child runs', () => {
    const dispatch = (story: TestRun, childRunId: string): TestRun =>
      story.record({ type: 'node.dispatched', nodeId: 'a', payload: { childRunId, childWorkflowId: 'w' } });
    const bill = (story: TestRun, childRunId: string, cost: number, more: object = {}): void => {
      const payload = { nodeId: 'a', childRunId, status: 'running', spent: { cost, tokens: 5 }, ...more };
      story.record({ type: 'capstan.child.changed', nodeId: 'a', payload });
    };

    it('gives each child what is left, and counts what it spent', () => {
      const story = spendOn(
        begun({ maxCostUsd: 1, maxTokens: 100, modelDeny: ['x'], thresholdPercent: 50 }),
        usage(30),
      );
      expect(childBudget(story.run)).toEqual({ maxCostUsd: 1, maxTokens: 70, modelDeny: ['x'] });
      dispatch(story, 'run-1');
      bill(story, 'run-1', 0.3, { exhausted: ['cost'] });
      expect(childBudget(story.run)).toEqual({ maxCostUsd: 0.7, maxTokens: 65, modelDeny: ['x'] });
      expect(spendingReportOf(story.run)).toEqual({
        spent: { cost: 0.3, tokens: 35, toolCalls: 0, retries: 0 },
        exhausted: ['cost'],
      });
      bill(story, 'run-2', 0.9);
      expect(childBudget(story.run)?.maxCostUsd).toBe(0);
      story.step();
      expect(budgetEventsOf(story)).toContain('cap.breached');
    });

    it('lets them run one at a time, until the spending of the previous one is known', () => {
      const story = begun({ maxCostUsd: 1 });
      expect(isChildSlotTaken(story.run)).toBe(false);
      dispatch(story, 'run-1');
      expect(isChildSlotTaken(story.run)).toBe(true);
      bill(story, 'run-1', 0.1);
      expect(isChildSlotTaken(story.run)).toBe(false);
    });

    it('is absent if the parent has none', () => {
      const story = new TestRun(workflow([node('a')]));
      story.step();
      story.step();
      dispatch(story, 'run-1');
      expect(isChildSlotTaken(story.run)).toBe(false);
      expect(childBudget(story.run)).toBeUndefined();
    });
  });

  it('is breached exactly when more than the limit is spent', () => {
    const calls = fc.array(fc.tuple(fc.nat(50), fc.integer({ min: 0, max: 99 })), { maxLength: 12 });
    fc.assert(
      fc.property(calls, fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 300 }), (made, tokens, cents) => {
        const story = begun({ maxTokens: tokens, maxCostUsd: cents / 100 });
        spendOn(story, ...made.map(([each, cost]) => usage(each, cost / 100)));
        const { spent } = story.run.budget;
        const isBreached = spent.tokens > tokens || spent.cost > cents / 100;
        expect(budgetEventsOf(story).includes('cap.breached')).toBe(isBreached);
        expect(story.step().events.filter(({ type }) => type.startsWith('budget'))).toEqual([]);
      }),
    );
  });
});

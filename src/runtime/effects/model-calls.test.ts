import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import type { Allowance } from '../../engine/models/budget.ts';
import { TestRun } from '../../engine/testing.ts';
import type { BudgetPolicy } from '../../protocol/ai/models.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import { type ModelResult, OverBudget } from './model.ts';
import { ModelCalls } from './model-calls.ts';

const USAGE = { provider: 'p', model: 'm', inputTokens: 30, outputTokens: 20 };
const ANSWER: ModelResult = { chunks: [], usage: USAGE };

/** Nodes that have begun, in a run whose log says at once what they say. */
function running(budget?: BudgetPolicy) {
  const story = new TestRun(workflow([node('a'), node('b')]), { configurable: budget ? { budget } : {} });
  if (budget) story.step();
  story.step();
  const calls = new ModelCalls(() => story.run);
  const said: NewEvent[] = [];
  const call = (nodeId: string, place: number, perform: (allowance: Allowance | undefined) => Promise<ModelResult>) =>
    calls.call({
      nodeId,
      place,
      written: async () => void story.step(),
      perform: ({ allowance }) => perform(allowance),
      say: (event) => {
        said.push(event);
        story.record(event);
      },
    });
  return { story, said, call };
}

describe('the model calls of a run', () => {
  it('are written down with what they took', async () => {
    const { said, call } = running();
    expect(await call('a', 0, async () => ANSWER)).toEqual({ ...ANSWER, isRecorded: false });
    expect(said).toEqual([{ type: 'provider.usage', nodeId: 'a', payload: { ...USAGE, nodeId: 'a' } }]);
  });

  it('are not written down twice: an attempt that is repeated gets what the log has', async () => {
    const { said, call } = running();
    await call('a', 0, async () => ANSWER);
    expect(await call('a', 0, async () => ANSWER)).toMatchObject({ isRecorded: true });
    expect(said).toHaveLength(1);
    expect(await call('a', 1, async () => ANSWER)).toMatchObject({ isRecorded: false });
    expect(said).toHaveLength(2);
  });

  it('go on side by side without a budget', async () => {
    const { call } = running();
    let finishFirst = (_result: ModelResult): void => {};
    const first = call('a', 0, () => new Promise((resolve) => (finishFirst = resolve)));
    await call('b', 0, async () => ANSWER);
    finishFirst(ANSWER);
    expect(await first).toMatchObject({ isRecorded: false });
  });

  it('take turns with one, so that each knows what is left', async () => {
    const { call } = running({ maxTokens: 120 });
    const allowed: unknown[] = [];
    const perform = async (allowance: Allowance | undefined): Promise<ModelResult> => {
      allowed.push(allowance?.tokens);
      return ANSWER;
    };
    await Promise.all([call('a', 0, perform), call('b', 0, perform)]);
    expect(allowed).toEqual([120, 70]);
  });

  it('end the run with the first that it cannot pay for, and none is made after that', async () => {
    const { said, call } = running({ maxTokens: 60 });
    let made = 0;
    const perform = async (allowance: Allowance | undefined): Promise<ModelResult> => {
      if (allowance!.tokens! < 50) throw new OverBudget('tokens', 50);
      made++;
      return ANSWER;
    };
    const outcomes = await Promise.allSettled([call('a', 0, perform), call('b', 0, perform), call('a', 1, perform)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(made).toBe(1);
    expect(said.filter(({ type }) => type === 'cap.breached')).toEqual([
      {
        type: 'cap.breached',
        nodeId: 'b',
        payload: { kind: 'budget-tokens', limit: 60, observed: 100, nodeId: 'b' },
      },
    ]);
  });

  it('that fail let the next one have its turn', async () => {
    const { call } = running({ maxTokens: 120 });
    const failing = call('a', 0, () => Promise.reject(new Error('not there')));
    await expect(failing).rejects.toThrow('not there');
    expect(await call('b', 0, async () => ANSWER)).toMatchObject({ isRecorded: false });
  });
});

import { describe, expect, it } from 'vitest';
import type { ProviderUsage } from '../../protocol/ai/models.ts';
import { type Cost, Spending } from './spending.ts';

function costOf(...calls: ProviderUsage[]): Cost | null {
  const spending = new Spending();
  for (const call of calls) spending.add(call);
  return spending.cost;
}

const usage = (inputTokens: number, outputTokens: number, more: Partial<ProviderUsage> = {}): ProviderUsage => ({
  provider: 'p',
  model: 'm',
  inputTokens,
  outputTokens,
  ...more,
});

describe('the cost of a run', () => {
  it('is null if no model was called', () => {
    expect(costOf()).toBeNull();
  });

  it('is zero if the calls used nothing', () => {
    expect(costOf(usage(0, 0))).toEqual({ tokens: { input: 0, output: 0 }, model: 'm', provider: 'p' });
  });

  it('is the sum over all calls, with model and provider', () => {
    expect(costOf(usage(3, 4), usage(10, 20))).toEqual({
      tokens: { input: 13, output: 24 },
      model: 'm',
      provider: 'p',
    });
  });

  it('names the model and the provider of the last call', () => {
    const cost = costOf(usage(1, 1), usage(1, 1, { model: 'n', provider: 'q' }));
    expect(cost).toEqual({ tokens: { input: 2, output: 2 }, model: 'n', provider: 'q' });
  });

  it('is known in USD if the price of every call is', () => {
    expect(costOf(usage(1, 1, { costEstimateUsd: 0.25 }), usage(1, 1, { costEstimateUsd: 0.5 }))?.usd).toBe(0.75);
    expect(costOf(usage(1, 1, { costEstimateUsd: 0.25 }), usage(1, 1))).not.toHaveProperty('usd');
  });
});

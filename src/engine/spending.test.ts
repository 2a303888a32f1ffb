import { describe, expect, it } from 'vitest';
import type { ChunkMeta } from '../protocol/events.ts';
import { type Cost, Spending } from './spending.ts';

function costOf(...metas: (ChunkMeta | undefined)[]): Cost | null {
  const spending = new Spending();
  for (const meta of metas) spending.add({ nodeId: 'a', runId: 'r', chunk: '', isLast: true, ...(meta && { meta }) });
  return spending.cost;
}

const usage = (promptTokens: number, completionTokens: number) => ({
  promptTokens,
  completionTokens,
  totalTokens: promptTokens + completionTokens,
});

describe('the cost of a run', () => {
  it('is unknown while no call said what it used', () => {
    expect(costOf()).toBeNull();
    expect(costOf(undefined, { model: 'm' })).toBeNull();
  });

  it('is zero where calls said that they used nothing', () => {
    expect(costOf({ usage: usage(0, 0) })).toEqual({ tokens: { input: 0, output: 0 } });
  });

  it('is the sum over all calls, with the model and the provider where there is one', () => {
    const meta = { model: 'm', provider: 'p' };
    const cost = costOf({ ...meta, usage: usage(3, 4) }, meta, { ...meta, usage: usage(10, 20) });
    expect(cost).toEqual({ tokens: { input: 13, output: 24 }, model: 'm', provider: 'p' });
  });

  it('names no model and no provider where there were several', () => {
    const cost = costOf(
      { model: 'm', provider: 'p', usage: usage(1, 1) },
      { model: 'n', provider: 'q', usage: usage(1, 1) },
    );
    expect(cost).toEqual({ tokens: { input: 2, output: 2 } });
  });
});

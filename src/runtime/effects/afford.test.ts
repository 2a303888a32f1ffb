import { describe, expect, it } from 'vitest';
import { afford, matches } from './afford.ts';
import type { Price, ProviderQuestion } from './model.ts';

const PRICE: Price = { input: 1_000_000, output: 2_000_000 };
/** Ten tokens, as far as can be known. */
const question = (more: Partial<ProviderQuestion> = {}): ProviderQuestion => ({
  model: 'large-1',
  messages: [{ role: 'user', content: 'x'.repeat(40) }],
  ...more,
});

describe('what a run can afford', () => {
  it('is anything without a budget', () => {
    expect(afford(question(), undefined, undefined)).toEqual(question());
  });

  it('is an answer as long as the tokens that are left', () => {
    expect(afford(question(), { tokens: 100 }, undefined).maxTokens).toBe(90);
    expect(afford(question({ maxTokens: 20 }), { tokens: 100 }, undefined).maxTokens).toBe(20);
    expect(afford(question(), { tokens: 11 }, undefined).maxTokens).toBe(1);
  });

  it('is nothing where not even one token of an answer would fit', () => {
    expect(() => afford(question(), { tokens: 10 }, undefined)).toThrow(
      expect.objectContaining({ dimension: 'tokens', need: 11 }),
    );
  });

  it('is an answer as long as the money that is left', () => {
    expect(afford(question(), { costUsd: 20 }, PRICE).maxTokens).toBe(5);
    expect(() => afford(question(), { costUsd: 11 }, PRICE)).toThrow(
      expect.objectContaining({ dimension: 'cost', need: 12 }),
    );
  });

  it('is nothing of a model whose price nobody knows, where money is limited', () => {
    expect(() => afford(question(), { costUsd: 20 }, undefined)).toThrow(
      expect.objectContaining({ error: expect.objectContaining({ code: 'budget_model_denied' }) }),
    );
  });

  it.each([
    [{ modelAllow: ['large-*'] }, true],
    [{ modelAllow: ['small-*'] }, false],
    [{ modelAllow: [] }, false],
    [{ modelDeny: ['large-1'] }, false],
    [{ modelAllow: ['*'], modelDeny: ['large-*'] }, false],
    [{ modelDeny: ['large'] }, true],
  ])('is only of models that it names: %j', (allowance, isAllowed) => {
    const call = (): unknown => afford(question(), allowance, undefined);
    if (isAllowed) expect(call()).toEqual(question());
    else expect(call).toThrow(expect.objectContaining({ error: expect.objectContaining({ retryable: false }) }));
  });
});

describe('a pattern', () => {
  it.each([
    ['a*c', 'abc', true],
    ['a*c', 'ac', true],
    ['a*a', 'a', false],
    ['*b*', 'abc', true],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'a-c', false],
    ['a*bc*c', 'abc', false],
    ['a.c', 'abc', false],
    ['', 'a', false],
    ['*', '', true],
  ])('%s and %s: %s', (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected);
  });
});

import { describe, expect, it } from 'vitest';
import { configProblems, run, STARTED_AT } from '../../../../test/support/node-context.ts';

describe.each(['core.delay', 'core.conformance.hold'])('%s', (typeId) => {
  it.each([
    [{ delayMs: 5 }, {}, 5],
    [{}, { delayMs: 5 }, 5],
    [{}, { ms: 5 }, 5],
    [{}, { durationMs: 5 }, 5],
    [{ delayMs: 1 }, { delayMs: 2, ms: 3, durationMs: 4 }, 1],
    [{}, { delayMs: 2, ms: 3, durationMs: 4 }, 2],
    [{}, { ms: 3, durationMs: 4 }, 3],
    [{ delayMs: 0 }, { delayMs: 9 }, 0],
    [{}, {}, 0],
    [{ delaySeconds: 9 }, {}, 0],
  ])('with inputs %j and config %j waits for %d ms', (inputs, config, length) => {
    const outcome = run(typeId, { inputs, config });
    expect(outcome).toEqual(length > 0 ? { sleepUntil: STARTED_AT + length } : { done: { outputs: { waitedMs: 0 } } });
  });

  it('holds nothing while it waits: it is called again and counts from the start of the attempt', () => {
    const config = { ms: 1_000 };
    expect(run(typeId, { config, now: () => STARTED_AT + 999 })).toEqual({ sleepUntil: STARTED_AT + 1_000 });
    expect(run(typeId, { config, now: () => STARTED_AT + 1_000 })).toMatchObject({ done: {} });
  });

  it('says how long it was asked to wait, not how long it took: a replay must be equal', () => {
    expect(run(typeId, { config: { ms: 10 }, now: () => STARTED_AT + 12_345 })).toEqual({
      done: { outputs: { waitedMs: 10 } },
    });
  });

  it.each([-1, '5', true, {}, [], Number.NaN, Number.POSITIVE_INFINITY])('refuses to wait for %j', (delayMs) => {
    expect(run(typeId, { inputs: { delayMs } })).toMatchObject({
      failed: { code: 'validation_error', retryable: false },
    });
  });

  it('is refused with a config that is negative or no number', () => {
    expect(configProblems(typeId, { ms: -1 })).toEqual(['.ms']);
    expect(configProblems(typeId, { delayMs: '5' })).toEqual(['.delayMs']);
    expect(configProblems(typeId, { durationMs: 3_600_000_000 })).toEqual([]);
  });
});

describe('core.flow.wait', () => {
  const TYPE = 'core.flow.wait';

  it('waits for so many seconds, counted from its start', () => {
    const config = { mode: 'duration', seconds: 2 };
    expect(run(TYPE, { config })).toEqual({ sleepUntil: STARTED_AT + 2_000 });
    expect(run(TYPE, { config, now: () => STARTED_AT + 2_000 })).toEqual({ done: { outputs: { resumed: true } } });
  });

  it('waits until a time, which may have passed', () => {
    const timestamp = new Date(STARTED_AT + 500).toISOString();
    expect(run(TYPE, { config: { mode: 'until', timestamp } })).toEqual({ sleepUntil: STARTED_AT + 500 });
    expect(run(TYPE, { config: { mode: 'until', timestamp: '2020-01-01T00:00:00Z' } })).toMatchObject({ done: {} });
  });

  it('waits for a call and hands on what it brings', () => {
    const config = { mode: 'webhook', signatureHint: 'hmac' };
    expect(run(TYPE, { config })).toEqual({
      interrupt: { kind: 'external-event', data: { eventType: 'webhook:hmac', correlation: {} } },
    });
    expect(run(TYPE, { config, answer: { value: { paid: true } } })).toEqual({
      done: { outputs: { resumed: true, payload: { paid: true } } },
    });
  });

  it('is refused without what its mode needs', () => {
    expect(configProblems(TYPE, { mode: 'duration' })).toEqual(['.seconds']);
    expect(configProblems(TYPE, { mode: 'until', timestamp: 'soon' })).toEqual(['.timestamp']);
    expect(configProblems(TYPE, { mode: 'webhook' })).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import type { Configurable } from '../../protocol/running/runs.ts';
import type { Firing } from '../../runtime/effects/firing.ts';
import { type ModelResult, OverBudget } from '../../runtime/effects/model.ts';
import { NodeFailure } from '../../runtime/node-type.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { answerAsMock, MOCK_PROVIDERS, mockableModel, mockProviders } from './mock-providers.ts';

describe('the mock providers', () => {
  const call = (id: string, config: Record<string, unknown> = {}): Promise<ModelResult> =>
    answerAsMock(new ManualClock(), { id, config });

  it('are these', () => {
    expect(MOCK_PROVIDERS).toEqual(['stream-text', 'tool-calls', 'error', 'usage-only']);
  });

  it('stream-text says its tokens', async () => {
    const { chunks } = await call('stream-text', { tokens: ['a', 'b'], finishReason: 'length', model: 'm' });
    expect(chunks.map(({ text }) => text)).toEqual(['a', 'b']);
    expect(chunks[1]!.meta).toEqual({
      model: 'm',
      finishReason: 'length',
      usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
    });
  });

  it("stream-text says the protocol's words where it is told none", async () => {
    const { chunks } = await call('stream-text');
    expect(chunks.map(({ text }) => text)).toEqual(['mock', ' response']);
  });

  it('say the same every time', async () => {
    for (const id of ['stream-text', 'usage-only']) expect(await call(id)).toEqual(await call(id));
  });

  it('tool-calls asks for tools', async () => {
    const toolCalls = [{ id: 't', name: 'search', arguments: { q: 'x' } }];
    const { chunks } = await call('tool-calls', { toolCalls });
    expect(chunks[0]!.meta).toMatchObject({ finishReason: 'tool_calls', toolCalls });
  });

  it('error fails as it is told', async () => {
    const clock = new ManualClock();
    const config = { code: 'c', retryable: true, failAfterMs: 50 };
    const failing = answerAsMock(clock, { id: 'error', config });
    clock.advance(50);
    const error = await failing.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NodeFailure);
    expect((error as NodeFailure).error).toMatchObject({ code: 'c', retryable: true });
  });

  it('do not include others', async () => {
    await expect(call('unknown')).rejects.toBeInstanceOf(NodeFailure);
  });

  it('are checked when a run is created', () => {
    const messageOf = (id: string, config: Record<string, unknown>) => mockProviders.check({ id, config })?.message;
    expect(messageOf('stream-text', { tokens: ['a'] })).toBeUndefined();
    expect(messageOf('stream-text', { tokens: [] })).toContain('mockProvider.config/tokens ');
    expect(messageOf('tool-calls', {})).toBeDefined();
    expect(messageOf('stream-text', { delayMsPerToken: 5_001 })).toContain('/delayMsPerToken ');
    expect(mockProviders.check({ id: 'unknown' })).toMatchObject({ refused: 'unsupported_mock_provider' });
  });
});

describe('a model seam with mocks', () => {
  const real = async (): Promise<ModelResult> => ({ chunks: [{ text: 'real', delayMs: 0, meta: {} }] });
  const seamFor = (configurable: Configurable) =>
    mockableModel(real, {
      clock: new ManualClock(),
      reader: {
        view: async (_visibility: unknown, _runId: string, read: (held: unknown) => unknown) =>
          read({ run: { facts: { configurable } } }),
      },
    } as unknown as Pick<Runtime, 'reader' | 'clock'>);
  const firing = { tenant: 'alpha', runId: 'run-1' } as Firing;

  it('answers runs that name a mock provider, and no others', async () => {
    const mocked = await seamFor({ mockProvider: { id: 'stream-text' } })({ provider: 'p' }, firing);
    expect(mocked.chunks.map(({ text }) => text)).toEqual(['mock', ' response']);
    expect(await seamFor({})({ provider: 'p' }, firing)).toEqual(await real());
  });

  it('keeps mocks within the budget of the run', async () => {
    const seam = seamFor({ mockProvider: { id: 'stream-text' } });
    await expect(seam({}, { ...firing, allowance: { tokens: 0 } })).rejects.toBeInstanceOf(OverBudget);
  });
});

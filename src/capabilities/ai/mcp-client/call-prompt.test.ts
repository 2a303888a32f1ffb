import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { effectsOf, run } from '../../../../test/support/node-context.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { checkMockProvider, MOCK_PROVIDERS, mockModel } from '../../../runtime/effects/mock-model.ts';
import type { ModelRequest, ModelResult } from '../../../runtime/effects/model.ts';
import { modelSeam } from '../../../runtime/effects/model-seam.ts';
import { type NodeContext, NodeFailure } from '../../../runtime/node-type.ts';

const TYPE = 'core.ai.callPrompt';

describe(TYPE, () => {
  it('fails where there is no model to call, naming what is missing', async () => {
    const nobody = modelSeam(mockModel(new ManualClock()), []);
    const model = (request: ModelRequest): Promise<ModelResult> => nobody(request, {} as never);
    await expect(run(TYPE, { effects: effectsOf({ model }) })).rejects.toMatchObject({
      error: { code: 'capability_not_provided', message: expect.stringContaining('aiProviders'), retryable: false },
    });
  });

  it('streams what the model says, piece by piece, and marks the last', async () => {
    const emitted: NewEvent[] = [];
    const outcome = await calling(
      { chunks: [piece('Hel'), piece('lo', { finishReason: 'stop', model: 'm' })] },
      emitted,
    );
    expect(emitted.map(({ payload }) => payload)).toEqual([
      { nodeId: 'a', runId: 'run-1', chunk: 'Hel', isLast: false, meta: {} },
      { nodeId: 'a', runId: 'run-1', chunk: 'lo', isLast: true, meta: { finishReason: 'stop', model: 'm' } },
    ]);
    expect(outcome).toMatchObject({ done: { outputs: { content: 'Hello', finishReason: 'stop', model: 'm' } } });
  });

  it('waits between pieces as long as the model would', async () => {
    const waits: number[] = [];
    const sleep = async (ms: number): Promise<void> => void waits.push(ms);
    await calling({ chunks: [piece('a', {}, 20), piece('b'), piece('c', {}, 30)] }, [], { sleep });
    expect(waits).toEqual([20, 30]);
  });

  it('hands the provider its config', async () => {
    let asked: unknown;
    const model = async (request: unknown): Promise<ModelResult> => {
      asked = request;
      return { chunks: [] };
    };
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens: ['x'] } } };
    await run(TYPE, { configurable, effects: effectsOf({ model }) });
    expect(asked).toEqual({ mockProvider: { id: 'stream-text', config: { tokens: ['x'] } } });
  });

  it('leaves in its outputs only what JSON can hold', async () => {
    const outcome = await calling({ chunks: [piece('only text')] }, []);
    const { outputs } = (outcome as { done: { outputs: object } }).done;
    expect(JSON.parse(JSON.stringify(outputs))).toStrictEqual(outputs);
  });
});

describe('the mock providers', () => {
  const call = (id: string, config: Record<string, unknown> = {}): Promise<ModelResult> =>
    mockModel(new ManualClock())({ mockProvider: { id, config } }, {} as never);

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
    const failing = mockModel(clock)(
      { mockProvider: { id: 'error', config: { code: 'c', retryable: true, failAfterMs: 50 } } },
      {} as never,
    );
    clock.advance(50);
    const error = await failing.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NodeFailure);
    expect((error as NodeFailure).error).toMatchObject({ code: 'c', retryable: true });
  });

  it('do not include others', async () => {
    await expect(call('unknown')).rejects.toBeInstanceOf(NodeFailure);
  });

  it('are checked when a run is created', () => {
    expect(checkMockProvider('stream-text', { tokens: ['a'] })).toBeUndefined();
    expect(checkMockProvider('stream-text', { tokens: [] })).toMatch(/^\/tokens /);
    expect(checkMockProvider('tool-calls', {})).toBeDefined();
    expect(checkMockProvider('stream-text', { delayMsPerToken: 5_001 })).toMatch(/^\/delayMsPerToken /);
  });
});

function piece(text: string, meta = {}, delayMs = 0) {
  return { text, delayMs, meta };
}

function calling(result: ModelResult, emitted: NewEvent[], given: Partial<NodeContext> = {}) {
  return run(TYPE, {
    configurable: { mockProvider: { id: 'stream-text' } },
    effects: effectsOf({ model: async () => result }),
    emit: (event) => void emitted.push(event),
    ...given,
  });
}

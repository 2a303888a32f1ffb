import { describe, expect, it } from 'vitest';
import { effectsOf, run } from '../../../../test/support/node-context.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import type { ModelRequest, ModelResult } from '../../../runtime/effects/model.ts';
import { modelSeam } from '../../../runtime/effects/model-seam.ts';
import type { NodeContext } from '../../../runtime/node-type.ts';

const TYPE = 'core.ai.callPrompt';

describe(TYPE, () => {
  it('fails where there is no model to call, naming what is missing', async () => {
    const nobody = modelSeam(() => []);
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

  it('leaves in its outputs only what JSON can hold', async () => {
    const outcome = await calling({ chunks: [piece('only text')] }, []);
    const { outputs } = (outcome as { done: { outputs: object } }).done;
    expect(JSON.parse(JSON.stringify(outputs))).toStrictEqual(outputs);
  });
});

function piece(text: string, meta = {}, delayMs = 0) {
  return { text, delayMs, meta };
}

function calling(result: ModelResult, emitted: NewEvent[], given: Partial<NodeContext> = {}) {
  return run(TYPE, {
    effects: effectsOf({ model: async () => result }),
    emit: (event) => void emitted.push(event),
    ...given,
  });
}

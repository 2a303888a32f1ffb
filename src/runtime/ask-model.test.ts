import { describe, expect, it } from 'vitest';
import { contextOf, effectsOf } from '../../test/support/node-context.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Configurable } from '../protocol/running/runs.ts';
import { askModel, buildMessages, modelChoice } from './ask-model.ts';
import type { ModelRequest, ModelResult } from './effects/model.ts';

const TYPE = 'core.ai.callPrompt';

describe('the model of a node', () => {
  const choice = (configurable: Configurable, config: JsonObject = {}): ModelRequest =>
    modelChoice(contextOf(TYPE, { configurable, config }));

  it('is left to the host if neither the run nor the node names one', () => {
    expect(choice({})).toEqual({});
  });

  it('comes from the node, unless the run overrides it', () => {
    const config = { provider: 'p', model: 'm', temperature: 0.1, maxTokens: 10, stopSequences: ['x'] };
    expect(choice({}, config)).toEqual(config);
    expect(choice({ model: 'n', temperature: 1, maxTokens: 5 }, config)).toMatchObject({
      provider: 'p',
      model: 'n',
      temperature: 1,
      maxTokens: 5,
    });
    expect(choice({ ai: { model: 'o' }, model: 'n' }, config)).toMatchObject({ provider: 'p', model: 'o' });
  });

  it('is not taken from the node if the run names another provider', () => {
    const config = { provider: 'p', model: 'm' };
    expect(choice({ ai: { provider: 'q' } }, config)).toEqual({ provider: 'q' });
    expect(choice({ ai: { provider: 'p' } }, config)).toEqual(config);
  });
});

describe('the messages to a model', () => {
  const messages = (inputs: JsonObject, config: JsonObject = {}) => buildMessages(contextOf(TYPE, { inputs, config }));

  it('are the prompts of the node, then the text of an input port', async () => {
    expect(await messages({ prompt: 'Hello?' }, { systemPrompt: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello?' },
    ]);
    expect(await messages({ input: 'a', text: 'b' })).toEqual([{ role: 'user', content: 'b' }]);
    expect(await messages({ other: 'a', prompt: 5 })).toEqual([]);
  });

  it('leave out the input text if the node has a user prompt', async () => {
    expect(await messages({ prompt: 'Hello?' }, { userPrompt: 'Say hello.' })).toEqual([
      { role: 'user', content: 'Say hello.' },
    ]);
  });

  it('are a whole conversation if the input has one, without invalid messages', async () => {
    const toolCalls = [{ id: 'c', name: 'search', arguments: { q: 'x' } }];
    const conversation = [
      { role: 'user', content: 'Search.' },
      { role: 'assistant', content: '', toolCalls },
      { role: 'tool', toolCallId: 'c', name: 'search', content: { found: 1 } },
      { role: 'narrator', content: 'Meanwhile' },
      'nonsense',
    ];
    expect(await messages({ messages: conversation })).toEqual([
      { role: 'user', content: 'Search.' },
      { role: 'assistant', content: '', toolCalls },
      { role: 'tool', toolCallId: 'c', name: 'search', content: '{"found":1}' },
    ]);
  });
});

describe('the answer of a model', () => {
  const chunk = (text: string) => ({ text, delayMs: 0, meta: {} });
  const RESULT: ModelResult = { chunks: [chunk('Hel'), chunk('lo')] };
  const ask = async (model: (request: ModelRequest) => Promise<ModelResult>) => {
    const emitted: NewEvent[] = [];
    const context = contextOf(TYPE, { effects: effectsOf({ model }), emit: (event) => void emitted.push(event) });
    const { content } = await askModel(context, {});
    return { content, chunks: emitted.map(({ payload }) => (payload as { chunk: string }).chunk) };
  };

  it('is emitted once, while it is streamed', async () => {
    const answer = ask(async ({ onChunk }) => {
      for (const [index, each] of RESULT.chunks.entries()) onChunk!(each, index === 1);
      return RESULT;
    });
    expect(await answer).toEqual({ content: 'Hello', chunks: ['Hel', 'lo'] });
  });

  it('that was recorded by an earlier attempt is emitted if the log does not have it', async () => {
    expect(await ask(async () => RESULT)).toEqual({ content: 'Hello', chunks: ['Hel', 'lo'] });
    expect(await ask(async () => ({ ...RESULT, isRecorded: true }))).toEqual({ content: 'Hello', chunks: [] });
  });
});

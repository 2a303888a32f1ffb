import { describe, expect, it } from 'vitest';
import { contextOf, effectsOf } from '../capabilities/running/nodes/testing.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Configurable } from '../protocol/running/runs.ts';
import { askModel, messagesFor, modelChoice } from './ask-model.ts';
import type { ModelRequest, ModelResult } from './effects/model.ts';

const TYPE = 'core.ai.callPrompt';

describe('whom a node asks', () => {
  const choice = (configurable: Configurable, config: JsonObject = {}): ModelRequest =>
    modelChoice(contextOf(TYPE, { configurable, config }));

  it('is whom the host would ask where nobody says anything', () => {
    expect(choice({})).toEqual({});
  });

  it('is whom the node says, unless the run says otherwise', () => {
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

  it('takes no model of one provider to another, which would not know it', () => {
    const config = { provider: 'p', model: 'm' };
    expect(choice({ ai: { provider: 'q' } }, config)).toEqual({ provider: 'q' });
    expect(choice({ ai: { provider: 'p' } }, config)).toEqual(config);
  });
});

describe('what a model is told', () => {
  const told = (inputs: JsonObject, config: JsonObject = {}) => messagesFor(contextOf(TYPE, { inputs, config }));

  it('is the text that came in, after what the node says', async () => {
    expect(await told({ prompt: 'Hello?' }, { systemPrompt: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello?' },
    ]);
    expect(await told({ input: 'a', text: 'b' })).toEqual([{ role: 'user', content: 'b' }]);
    expect(await told({ other: 'a', prompt: 5 })).toEqual([]);
  });

  it('is not said twice where a prompt of the node asks already', async () => {
    expect(await told({ prompt: 'Hello?' }, { userPrompt: 'Say hello.' })).toEqual([
      { role: 'user', content: 'Say hello.' },
    ]);
  });

  it('is a whole conversation where there was one, without what makes no sense', async () => {
    const toolCalls = [{ id: 'c', name: 'search', arguments: { q: 'x' } }];
    const messages = [
      { role: 'user', content: 'Search.' },
      { role: 'assistant', content: '', toolCalls },
      { role: 'tool', toolCallId: 'c', name: 'search', content: { found: 1 } },
      { role: 'narrator', content: 'Meanwhile' },
      'nonsense',
    ];
    expect(await told({ messages })).toEqual([
      { role: 'user', content: 'Search.' },
      { role: 'assistant', content: '', toolCalls },
      { role: 'tool', toolCallId: 'c', name: 'search', content: '{"found":1}' },
    ]);
  });
});

describe('an answer', () => {
  const chunk = (text: string) => ({ text, delayMs: 0, meta: {} });
  const RESULT: ModelResult = { chunks: [chunk('Hel'), chunk('lo')] };
  const asking = async (model: (request: ModelRequest) => Promise<ModelResult>) => {
    const emitted: NewEvent[] = [];
    const context = contextOf(TYPE, { effects: effectsOf({ model }), emit: (event) => void emitted.push(event) });
    const { content } = await askModel(context, {});
    return { content, chunks: emitted.map(({ payload }) => (payload as { chunk: string }).chunk) };
  };

  it('is told while it comes, and then not again', async () => {
    const heard = asking(async ({ onChunk }) => {
      for (const [index, each] of RESULT.chunks.entries()) onChunk!(each, index === 1);
      return RESULT;
    });
    expect(await heard).toEqual({ content: 'Hello', chunks: ['Hel', 'lo'] });
  });

  it('that is only remembered is told if the log does not have it', async () => {
    expect(await asking(async () => RESULT)).toEqual({ content: 'Hello', chunks: ['Hel', 'lo'] });
    expect(await asking(async () => ({ ...RESULT, isTold: true }))).toEqual({ content: 'Hello', chunks: [] });
  });
});

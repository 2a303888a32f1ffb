import { describe, expect, it } from 'vitest';
import type { ModelResult } from './model.ts';
import { scriptedProvider } from './scripted-model.ts';

const SETTINGS = { provider: 'play', models: ['small', 'large'], prices: {} };

function ask(answers: unknown[], said: string, model = 'small'): Promise<ModelResult> {
  const { answer } = scriptedProvider(SETTINGS, { answers });
  const call = { signal: new AbortController().signal, effectId: 'e', tenant: 't', nodeId: 'n', onChunk: () => {} };
  return answer({ model, messages: [{ role: 'user', content: said }] }, call);
}

const textOf = ({ chunks }: ModelResult): string => chunks.map(({ text }) => text).join('');

describe('a scripted provider', () => {
  it('says the first line that fits', async () => {
    const answers = [
      { when: { contains: 'weather' }, content: 'It rains.' },
      { when: { model: 'large' }, content: 'I am large.' },
      { content: 'You said: {{message}}' },
    ];
    expect(textOf(await ask(answers, 'How is the weather?'))).toBe('It rains.');
    expect(textOf(await ask(answers, 'Who are you?', 'large'))).toBe('I am large.');
    expect(textOf(await ask(answers, 'costs $& more'))).toBe('You said: costs $& more');
  });

  it('says the same every time, word by word, and what it used', async () => {
    const answers = [{ content: 'a b c', usage: { inputTokens: 3, outputTokens: 4 } }];
    const result = await ask(answers, 'x');
    expect(await ask(answers, 'x')).toEqual(result);
    expect(result.chunks.map(({ text }) => text)).toEqual(['a ', 'b ', 'c']);
    expect(result.usage).toEqual({
      provider: 'play',
      model: 'small',
      inputTokens: 3,
      outputTokens: 4,
      totalTokens: 7,
    });
  });

  it('gives data as JSON, asks for tools, refuses and breaks off as it is told', async () => {
    expect(textOf(await ask([{ data: { a: [1] } }], 'x'))).toBe('{"a":[1]}');
    const toolCalls = [{ id: '1', name: 'search', arguments: { q: 'x' } }];
    expect((await ask([{ toolCalls }], 'x')).chunks.at(-1)!.meta).toMatchObject({
      finishReason: 'tool_calls',
      toolCalls,
    });
    expect(await ask([{ refusal: 'No.' }], 'x')).toMatchObject({ refusal: { text: 'No.' } });
    expect((await ask([{ content: 'a', finishReason: 'length' }], 'x')).chunks[0]!.meta.finishReason).toBe('length');
  });

  it('has no answer to what its script does not have', async () => {
    await expect(ask([{ when: { contains: 'a' }, content: 'b' }], 'x')).rejects.toMatchObject({
      error: { code: 'provider_rejected', retryable: false },
    });
  });

  it('does not begin with a script that makes no sense', () => {
    expect(() => scriptedProvider(SETTINGS, { answers: [{ contents: 'x' }] })).toThrow(/answers\/0/);
    expect(() => scriptedProvider(SETTINGS, [])).toThrow();
  });
});

import { describe, expect, it } from 'vitest';
import { contextOf } from '../capabilities/running/nodes/testing.ts';
import type { PromptTarget, PromptTemplate } from '../protocol/ai/prompts.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { FoundPrompts } from './effects/seams.ts';
import type { NodeContext } from './node-type.ts';
import { composePrompts, messagesOf, promptRefProblems } from './prompts.ts';

const template = (templateId: string, more: Partial<PromptTemplate> = {}): PromptTemplate => ({
  templateId,
  version: '1.0.0',
  kind: 'system',
  text: `The text of ${templateId}.`,
  ...more,
});

/** A node with a library, and what came of it. */
function nodeWith(given: Partial<NodeContext>, library: readonly PromptTemplate[], more: Partial<FoundPrompts> = {}) {
  const events: NewEvent[] = [];
  const asked: PromptTarget[][] = [];
  const context = contextOf('core.ai.callPrompt', given);
  const prompts: NodeContext['effects']['prompts'] = async ({ targets }) => {
    asked.push([...targets]);
    const templates = targets.map((target) => library.find((one) => one.templateId === target.templateId) ?? null);
    return { templates, observability: 'hashed', ...more };
  };
  return {
    events,
    asked,
    context: {
      ...context,
      effects: { ...context.effects, prompts },
      emit: (event: NewEvent) => void events.push(event),
      tell: (event: NewEvent) => void events.push(event),
    },
  };
}

describe('the prompts of a node', () => {
  it('are fetched all at once, and in the order in which a model is given them', async () => {
    const config = {
      userPromptRef: 'prompt:u',
      additionalPromptRefs: ['prompt:more@1.0.0'],
      fewShotPromptRefs: [{ templateId: 'few' }],
      schemaHintPromptRef: 'prompt:hint',
      systemPromptRef: 'prompt:s',
    };
    const { context, asked } = nodeWith({ config }, [
      template('s'),
      template('hint', { kind: 'schema-hint' }),
      template('few', { kind: 'few-shot' }),
      template('more', { kind: 'few-shot' }),
      template('u', { kind: 'user' }),
    ]);
    const prompts = await composePrompts(context);
    expect(asked.map((targets) => targets.map(({ templateId }) => templateId))).toEqual([
      ['s', 'hint', 'few', 'more', 'u'],
    ]);
    expect(messagesOf(context, prompts).map(({ role }) => role)).toEqual(['system', 'system', 'user', 'user', 'user']);
  });

  it('are none, and nobody is asked, where there are no references', async () => {
    const { context, asked } = nodeWith({ config: { systemPrompt: 'You are calm.' } }, []);
    const prompts = await composePrompts(context);
    expect([prompts, asked]).toEqual([[], []]);
    expect(messagesOf(context, prompts)).toEqual([{ role: 'system', content: 'You are calm.' }]);
  });

  it('give a model the words that the log does not have', async () => {
    const { context, events } = nodeWith(
      {
        config: { systemPromptRef: 'prompt:s' },
        inputs: { note: 'private' },
        shown: () => ({ inputs: { note: '[REDACTED]' }, variables: {} }),
      },
      [template('s', { text: 'Note: {{note}}' })],
      { observability: 'full' },
    );
    expect(messagesOf(context, await composePrompts(context))).toEqual([
      { role: 'system', content: 'Note: <UNTRUSTED>private</UNTRUSTED>' },
    ]);
    expect(events.map(({ type }) => type)).toEqual(['agent.promptResolved', 'prompt.composed']);
    expect(JSON.stringify(events)).not.toContain('private');
  });

  it('are pinned to the version that was found, as far as the log is concerned', async () => {
    const { context, events } = nodeWith({ config: { systemPromptRef: 'prompt:s' } }, [
      template('s', { version: '3.2.1' }),
    ]);
    await composePrompts(context);
    expect(events[0]!.payload).toMatchObject({ resolved: 'prompt:s@3.2.1' });
    expect(events[1]!.payload).toMatchObject({ refs: ['prompt:s@3.2.1'] });
  });

  it('take the time from the log, so that they come to the same when the node is called again', async () => {
    const library = [
      template('s', {
        text: '{{now}} {{nodeId}} {{currentUserId}}',
        variables: ['now', 'nodeId', 'currentUserId'].map((name) => ({
          name,
          type: 'string',
          required: true,
          source: 'context',
        })),
      }),
    ];
    const hashAt = async (now: number): Promise<string> => {
      const { context } = nodeWith({ config: { systemPromptRef: 'prompt:s' }, now: () => now }, library);
      const [prompt] = await composePrompts(context);
      expect(prompt!.text).toBe('2026-01-01T00:00:00.000Z a somebody');
      return prompt!.hash;
    };
    expect(await hashAt(1)).toBe(await hashAt(2));
  });

  it('fail the node for good where the library has none, after the log has what was looked for', async () => {
    const { context, events } = nodeWith({ config: { systemPromptRef: 'prompt:gone@1.0.0' } }, []);
    await expect(composePrompts(context)).rejects.toMatchObject({
      error: { code: 'prompt_not_found', retryable: false },
    });
    expect(events.map(({ type, payload }) => [type, (payload as { resolved?: string }).resolved])).toEqual([
      ['agent.promptResolved', 'prompt:gone@1.0.0'],
    ]);
  });
});

describe('references in a config', () => {
  it('are right or told by their place', () => {
    expect(promptRefProblems({ systemPromptRef: 'prompt:a@1.0.0', fewShotPromptRefs: [{ templateId: 'b' }] })).toEqual(
      [],
    );
    expect(promptRefProblems({ promptId: 'anything', systemPrompt: 'text' })).toEqual([]);
    const wrong = { systemPromptRef: 'a', userPromptRef: null, fewShotPromptRefs: ['prompt:a', 'b'] };
    expect(promptRefProblems(wrong).map(({ path }) => path)).toEqual([
      '.systemPromptRef',
      '.fewShotPromptRefs.1',
      '.userPromptRef',
    ]);
  });
});

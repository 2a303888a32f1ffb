import { describe, expect, it } from 'vitest';
import { contextOf } from '../../test/support/node-context.ts';
import type { PromptTarget, PromptTemplate } from '../protocol/ai/prompts.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { FoundPrompts } from './effects/seams.ts';
import type { NodeContext } from './node-type.ts';
import { composePrompts, promptMessages, promptRefProblems } from './prompts.ts';

const template = (templateId: string, more: Partial<PromptTemplate> = {}): PromptTemplate => ({
  templateId,
  version: '1.0.0',
  kind: 'system',
  text: `The text of ${templateId}.`,
  ...more,
});

/** The context of a node with a prompt library, and what it records and requests. */
function nodeWith(given: Partial<NodeContext>, library: readonly PromptTemplate[], more: Partial<FoundPrompts> = {}) {
  const events: NewEvent[] = [];
  const requested: PromptTarget[][] = [];
  const context = contextOf('core.ai.callPrompt', given);
  const prompts: NodeContext['effects']['prompts'] = async ({ targets }) => {
    requested.push([...targets]);
    const templates = targets.map((target) => library.find((one) => one.templateId === target.templateId) ?? null);
    return { templates, observability: 'hashed', ...more };
  };
  return {
    events,
    requested,
    context: {
      ...context,
      effects: { ...context.effects, prompts },
      emit: (event: NewEvent) => void events.push(event),
      emitStep: (event: NewEvent) => void events.push(event),
    },
  };
}

describe('the prompts of a node', () => {
  it('are fetched in one request, in the order of the messages to the model', async () => {
    const config = {
      userPromptRef: 'prompt:u',
      additionalPromptRefs: ['prompt:more@1.0.0'],
      fewShotPromptRefs: [{ templateId: 'few' }],
      schemaHintPromptRef: 'prompt:hint',
      systemPromptRef: 'prompt:s',
    };
    const { context, requested } = nodeWith({ config }, [
      template('s'),
      template('hint', { kind: 'schema-hint' }),
      template('few', { kind: 'few-shot' }),
      template('more', { kind: 'few-shot' }),
      template('u', { kind: 'user' }),
    ]);
    const prompts = await composePrompts(context);
    expect(requested.map((targets) => targets.map(({ templateId }) => templateId))).toEqual([
      ['s', 'hint', 'few', 'more', 'u'],
    ]);
    expect(promptMessages(context, prompts).map(({ role }) => role)).toEqual([
      'system',
      'system',
      'user',
      'user',
      'user',
    ]);
  });

  it('are not fetched if the config has no references', async () => {
    const { context, requested } = nodeWith({ config: { systemPrompt: 'You are calm.' } }, []);
    const prompts = await composePrompts(context);
    expect([prompts, requested]).toEqual([[], []]);
    expect(promptMessages(context, prompts)).toEqual([{ role: 'system', content: 'You are calm.' }]);
  });

  it('have sensitive values for the model, and none in the log', async () => {
    const { context, events } = nodeWith(
      {
        config: { systemPromptRef: 'prompt:s' },
        inputs: { note: 'private' },
        masked: () => ({ inputs: { note: '[REDACTED]' }, variables: {} }),
      },
      [template('s', { text: 'Note: {{note}}' })],
      { observability: 'full' },
    );
    expect(promptMessages(context, await composePrompts(context))).toEqual([
      { role: 'system', content: 'Note: <UNTRUSTED>private</UNTRUSTED>' },
    ]);
    expect(events.map(({ type }) => type)).toEqual(['agent.promptResolved', 'prompt.composed']);
    expect(JSON.stringify(events)).not.toContain('private');
  });

  it('are recorded with the version that was found', async () => {
    const { context, events } = nodeWith({ config: { systemPromptRef: 'prompt:s' } }, [
      template('s', { version: '3.2.1' }),
    ]);
    await composePrompts(context);
    expect(events[0]!.payload).toMatchObject({ resolved: 'prompt:s@3.2.1' });
    expect(events[1]!.payload).toMatchObject({ refs: ['prompt:s@3.2.1'] });
  });

  it('take the time from the log, so that another call of the node composes the same text', async () => {
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

  it('fail the node without a retry if the library has no such template, after the choice is recorded', async () => {
    const { context, events } = nodeWith({ config: { systemPromptRef: 'prompt:gone@1.0.0' } }, []);
    await expect(composePrompts(context)).rejects.toMatchObject({
      error: { code: 'prompt_not_found', retryable: false },
    });
    expect(events.map(({ type, payload }) => [type, (payload as { resolved?: string }).resolved])).toEqual([
      ['agent.promptResolved', 'prompt:gone@1.0.0'],
    ]);
  });
});

describe('prompt references in a config', () => {
  it('are valid, or are reported with their path', () => {
    expect(promptRefProblems({ systemPromptRef: 'prompt:a@1.0.0', fewShotPromptRefs: [{ templateId: 'b' }] })).toEqual(
      [],
    );
    expect(promptRefProblems({ promptId: 'anything', systemPrompt: 'text' })).toEqual([]);
    const invalid = { systemPromptRef: 'a', userPromptRef: null, fewShotPromptRefs: ['prompt:a', 'b'] };
    expect(promptRefProblems(invalid).map(({ path }) => path)).toEqual([
      '.systemPromptRef',
      '.fewShotPromptRefs.1',
      '.userPromptRef',
    ]);
  });
});

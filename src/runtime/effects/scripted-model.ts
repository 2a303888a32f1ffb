import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { AnyObject, Closed, NonEmpty, OneOf } from '../../protocol/format/schema.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';
import { NodeFailure } from '../node-type.ts';
import { estimateTokens, inputEstimate } from './afford.ts';
import type { ModelMessage, ModelProvider, ModelResult, Price, ProviderCall, ProviderQuestion } from './model.ts';

const Optional = Type.Optional;

/** One answer of a script. One without `when` matches every question. */
const ScriptedAnswer = Closed({
  when: Optional(
    Closed({
      contains: Optional(Type.String({ minLength: 1, description: 'Part of the last message' })),
      model: Optional(NonEmpty),
    }),
  ),
  content: Optional(Type.String({ description: '`{{message}}` stands for the last message' })),
  reasoning: Optional(Type.String({ description: 'What the model thinks first' })),
  data: Optional(Type.Unknown({ description: 'Sent as JSON instead of content' })),
  toolCalls: Optional(Type.Array(Closed({ id: NonEmpty, name: NonEmpty, arguments: AnyObject }), { minItems: 1 })),
  refusal: Optional(NonEmpty),
  finishReason: Optional(OneOf(['stop', 'length'])),
  usage: Optional(Closed({ inputTokens: Type.Integer({ minimum: 0 }), outputTokens: Type.Integer({ minimum: 0 }) })),
});
type ScriptedAnswer = Static<typeof ScriptedAnswer>;

const Script = Closed({ answers: Type.Array(ScriptedAnswer, { minItems: 1 }) });

/** The settings of a scripted provider. */
interface ScriptedSettings {
  readonly provider: string;
  readonly models: readonly string[];
  readonly prices: Readonly<Record<string, Price>>;
}

const FREE: Price = { input: 0, output: 0 };

/** A provider that answers from a script, with the first answer that matches. It needs no network. */
export function scriptedProvider(settings: ScriptedSettings, script: unknown): ModelProvider {
  const { answers } = parseScript(script);
  const { provider: id, models } = settings;
  // A script costs nothing, unless it stands in for a model that does.
  const prices = { ...Object.fromEntries(models.map((model) => [model, FREE])), ...settings.prices };
  return {
    id,
    models,
    prices,
    answer: async (question, call) => {
      const scripted = answers.find((candidate) => matches(candidate, question));
      if (!scripted) {
        const message = 'The script has no answer to this question.';
        throw new NodeFailure({ code: 'provider_rejected', message, details: { provider: id }, retryable: false });
      }
      return answerWith(scripted, id, question, call);
    },
  };
}

function parseScript(script: unknown): Static<typeof Script> {
  const [problem] = Value.Errors(Script, script);
  if (problem) throw new Error(`${problem.instancePath || '/'} ${problem.message}`);
  return script as Static<typeof Script>;
}

function matches({ when }: ScriptedAnswer, { model, messages }: ProviderQuestion): boolean {
  if (when?.model !== undefined && when.model !== model) return false;
  return when?.contains === undefined || lastOf(messages).includes(when.contains);
}

function lastOf(messages: readonly ModelMessage[]): string {
  return messages.at(-1)?.content ?? '';
}

/** Streams a scripted answer word by word. */
export function answerWith(
  scripted: ScriptedAnswer,
  provider: string,
  { model, messages }: ProviderQuestion,
  { onChunk, onReasoning }: ProviderCall,
): ModelResult {
  const text = textOf(scripted, messages);
  const inputTokens = scripted.usage?.inputTokens ?? inputEstimate(messages);
  const outputTokens = scripted.usage?.outputTokens ?? estimateTokens(text);
  const totalTokens = inputTokens + outputTokens;
  const meta: ChunkMeta = { model, provider };
  const end: ChunkMeta = {
    ...meta,
    finishReason: finishOf(scripted),
    ...(scripted.toolCalls ? { toolCalls: scripted.toolCalls } : {}),
    usage: { promptTokens: inputTokens, completionTokens: outputTokens, totalTokens },
  };
  const thoughts = wordsOf(scripted.reasoning ?? '');
  for (const thought of thoughts) onReasoning?.(thought);
  const [first = '', ...more] = wordsOf(text);
  const words = [first, ...more];
  const chunks = words.map((word, index) => ({ text: word, delayMs: 0, meta: index < words.length - 1 ? meta : end }));
  for (const chunk of chunks) onChunk(chunk, chunk.meta === end);
  return {
    chunks,
    ...(thoughts.length > 0 ? { reasoning: thoughts } : {}),
    usage: { provider, model, inputTokens, outputTokens, totalTokens },
    ...(scripted.refusal === undefined ? {} : { refusal: { text: scripted.refusal } }),
  };
}

function wordsOf(text: string): string[] {
  return text.match(/^\s+|\S+\s*/g) ?? [];
}

function textOf({ content = '', data, refusal }: ScriptedAnswer, messages: readonly ModelMessage[]): string {
  if (refusal !== undefined) return refusal;
  return data === undefined ? content.replaceAll('{{message}}', () => lastOf(messages)) : JSON.stringify(data);
}

function finishOf({
  refusal,
  toolCalls,
  finishReason = 'stop',
}: ScriptedAnswer): NonNullable<ChunkMeta['finishReason']> {
  if (refusal !== undefined) return 'content_filter';
  return toolCalls ? 'tool_calls' : finishReason;
}

import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { AnyObject, Closed, NonEmpty, OneOf } from '../../protocol/format/schema.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';
import { NodeFailure } from '../node-type.ts';
import { estimateTokens, inputEstimate } from './afford.ts';
import type { ModelMessage, ModelProvider, ModelResult, Price, ProviderCall, ProviderQuestion } from './model.ts';

const Optional = Type.Optional;

/** One thing to say. Those without `when` are said to anything. */
const Line = Closed({
  when: Optional(
    Closed({
      contains: Optional(Type.String({ minLength: 1, description: 'Part of what was said last' })),
      model: Optional(NonEmpty),
    }),
  ),
  content: Optional(Type.String({ description: '`{{message}}` stands for what was said last' })),
  data: Optional(Type.Unknown({ description: 'Said as JSON, instead of content' })),
  toolCalls: Optional(Type.Array(Closed({ id: NonEmpty, name: NonEmpty, arguments: AnyObject }), { minItems: 1 })),
  refusal: Optional(NonEmpty),
  finishReason: Optional(OneOf(['stop', 'length'])),
  usage: Optional(Closed({ inputTokens: Type.Integer({ minimum: 0 }), outputTokens: Type.Integer({ minimum: 0 }) })),
});
type Line = Static<typeof Line>;

const Script = Closed({ answers: Type.Array(Line, { minItems: 1 }) });

export interface ScriptedSettings {
  readonly provider: string;
  readonly models: readonly string[];
  readonly prices: Readonly<Record<string, Price>>;
}

/** Says what its script says: the first line that fits. Needs no network, and says the same every time. */
export function scriptedProvider(settings: ScriptedSettings, script: unknown): ModelProvider {
  const { answers } = parseScript(script);
  const { provider: id, models, prices } = settings;
  return {
    id,
    models,
    prices,
    answer: async (question, call) => {
      const line = answers.find((candidate) => fits(candidate, question));
      if (!line) {
        const message = 'The script has no answer to this.';
        throw new NodeFailure({ code: 'provider_rejected', message, details: { provider: id }, retryable: false });
      }
      return sayLine(line, id, question, call);
    },
  };
}

function parseScript(script: unknown): Static<typeof Script> {
  const [problem] = Value.Errors(Script, script);
  if (problem) throw new Error(`${problem.instancePath || '/'} ${problem.message}`);
  return script as Static<typeof Script>;
}

function fits({ when }: Line, { model, messages }: ProviderQuestion): boolean {
  if (when?.model !== undefined && when.model !== model) return false;
  return when?.contains === undefined || lastOf(messages).includes(when.contains);
}

function lastOf(messages: readonly ModelMessage[]): string {
  return messages.at(-1)?.content ?? '';
}

/** Says a line word by word. */
export function sayLine(
  line: Line,
  provider: string,
  { model, messages }: ProviderQuestion,
  { onChunk }: ProviderCall,
): ModelResult {
  const text = textOf(line, messages);
  const inputTokens = line.usage?.inputTokens ?? inputEstimate(messages);
  const outputTokens = line.usage?.outputTokens ?? estimateTokens(text);
  const totalTokens = inputTokens + outputTokens;
  const meta: ChunkMeta = { model, provider };
  const end: ChunkMeta = {
    ...meta,
    finishReason: finishOf(line),
    ...(line.toolCalls ? { toolCalls: line.toolCalls } : {}),
    usage: { promptTokens: inputTokens, completionTokens: outputTokens, totalTokens },
  };
  const words = text.match(/^\s+|\S+\s*/g) ?? [''];
  const chunks = words.map((word, index) => ({ text: word, delayMs: 0, meta: index < words.length - 1 ? meta : end }));
  for (const chunk of chunks) onChunk(chunk, chunk.meta === end);
  return {
    chunks,
    usage: { provider, model, inputTokens, outputTokens, totalTokens },
    ...(line.refusal === undefined ? {} : { refusal: { text: line.refusal } }),
  };
}

function textOf({ content = '', data, refusal }: Line, messages: readonly ModelMessage[]): string {
  if (refusal !== undefined) return refusal;
  return data === undefined ? content.replaceAll('{{message}}', () => lastOf(messages)) : JSON.stringify(data);
}

function finishOf({ refusal, toolCalls, finishReason = 'stop' }: Line): NonNullable<ChunkMeta['finishReason']> {
  if (refusal !== undefined) return 'content_filter';
  return toolCalls ? 'tool_calls' : finishReason;
}

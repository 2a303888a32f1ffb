import { defined, isObject } from '../protocol/format/json.ts';
import type { ChunkMeta } from '../protocol/running/events.ts';
import type { ModelChunk, ModelMessage, ModelRequest, ModelResult, ToolCall } from './effects/model.ts';
import type { NodeContext } from './node-type.ts';
import { composePrompts, messagesOf } from './prompts.ts';

/** An answer in one piece. */
export interface Answer {
  readonly content: string;
  /** How it ended, and what else came with it. */
  readonly end: ChunkMeta;
  readonly result: ModelResult;
}

/** Asks a model on behalf of a node. The log gets each chunk as it arrives. */
export async function askModel(context: NodeContext, request: ModelRequest): Promise<Answer> {
  let isStreamed = false;
  const onChunk = (chunk: ModelChunk, isLast: boolean): void => {
    isStreamed = true;
    emitChunk(context, chunk, isLast);
  };
  const result = await context.effects.model({ ...request, onChunk });
  const { chunks, isTold = false } = result;
  if (!isStreamed && !isTold) await repeat(context, chunks);
  return { content: chunks.map(({ text }) => text).join(''), end: chunks.at(-1)?.meta ?? {}, result };
}

/** Emits the chunks of an answer that did not stream, at the pace that they say. */
async function repeat(context: NodeContext, chunks: readonly ModelChunk[]): Promise<void> {
  for (const [index, chunk] of chunks.entries()) {
    if (chunk.delayMs > 0) await context.sleep(chunk.delayMs);
    emitChunk(context, chunk, index === chunks.length - 1);
  }
}

function emitChunk({ node, runId, emit }: NodeContext, { text, meta }: ModelChunk, isLast: boolean): void {
  emit({ type: 'output.chunk', nodeId: node.id, payload: { nodeId: node.id, runId, chunk: text, isLast, meta } });
}

/** Whom a node asks, and how: what the run says, then what the node says; the host decides what nobody does. */
export function modelChoice({ configurable, config }: NodeContext): ModelRequest {
  const { ai = {} } = configurable;
  const given = config as { provider?: string; model?: string; temperature?: number; maxTokens?: number };
  // A model belongs to its provider: what the node says of one goes only with the other.
  const own = ai.provider === undefined || ai.provider === given.provider ? given.model : undefined;
  return defined({
    provider: ai.provider ?? given.provider,
    model: ai.model ?? configurable.model ?? own,
    temperature: configurable.temperature ?? given.temperature,
    maxTokens: configurable.maxTokens ?? given.maxTokens,
    stopSequences: (config as { stopSequences?: string[] }).stopSequences,
  });
}

/** Ports that may hold what a person says. */
const SPOKEN = ['prompt', 'text', 'message', 'content', 'input'] as const;

/** What the model is told: the node's prompts, then what came in, unless a prompt says already what a person asks. */
export async function messagesFor(context: NodeContext): Promise<ModelMessage[]> {
  const prompts = await composePrompts(context);
  const composed = messagesOf(context, prompts);
  const { messages } = context.inputs;
  if (Array.isArray(messages)) return [...composed, ...messages.flatMap(messageIn)];
  const isAsked = prompts.some(({ kind }) => kind === 'user') || typeof context.config.userPrompt === 'string';
  if (isAsked) return composed;
  const spoken = SPOKEN.map((port) => context.inputs[port]).find((value) => typeof value === 'string');
  return spoken === undefined ? composed : [...composed, { role: 'user', content: spoken as string }];
}

function messageIn(value: unknown): ModelMessage[] {
  if (!isObject(value)) return [];
  const { role, content: given, toolCallId, name, toolCalls } = value;
  const content = typeof given === 'string' ? given : JSON.stringify(given ?? '');
  if (role === 'system' || role === 'user') return [{ role, content }];
  if (role === 'assistant') {
    return [{ role, content, ...(Array.isArray(toolCalls) ? { toolCalls: toolCalls.flatMap(callIn) } : {}) }];
  }
  if (role === 'tool') return [{ role, content, toolCallId: String(toolCallId), name: String(name) }];
  return [];
}

function callIn(value: unknown): ToolCall[] {
  if (!isObject(value) || typeof value.name !== 'string') return [];
  return [{ id: String(value.id), name: value.name, arguments: value.arguments }];
}

import { defined, isObject } from '../protocol/format/json.ts';
import type { ChunkMeta } from '../protocol/running/events.ts';
import type { ModelChunk, ModelMessage, ModelRequest, ModelResult, ToolCall } from './effects/model.ts';
import type { NodeContext } from './node-type.ts';
import { composePrompts, promptMessages } from './prompts.ts';

/** The whole answer of a model, put together from its chunks. */
export interface ModelAnswer {
  readonly content: string;
  /** Metadata of the last chunk, such as the finish reason. */
  readonly end: ChunkMeta;
  readonly result: ModelResult;
}

/** Calls a model on behalf of a node and records the answer as `output.chunk` events while it is streamed. */
export async function askModel(context: NodeContext, request: ModelRequest): Promise<ModelAnswer> {
  let isStreamed = false;
  const onChunk = (chunk: ModelChunk, isLast: boolean): void => {
    isStreamed = true;
    emitChunk(context, chunk, isLast);
  };
  const { onReasoning } = request;
  let isThought = false;
  const onThought = (text: string): void => {
    isThought = true;
    onReasoning?.(text);
  };
  const result = await context.effects.model({ ...request, onChunk, onReasoning: onThought });
  const { chunks, isRecorded = false } = result;
  if (!isThought) for (const text of result.reasoning ?? []) onReasoning?.(text);
  if (!isStreamed && !isRecorded) await emitAll(context, chunks);
  return { content: chunks.map(({ text }) => text).join(''), end: chunks.at(-1)?.meta ?? {}, result };
}

/** Emits an answer that was not streamed (recorded by an earlier attempt, say) with the delays of a stream. */
async function emitAll(context: NodeContext, chunks: readonly ModelChunk[]): Promise<void> {
  for (const [index, chunk] of chunks.entries()) {
    if (chunk.delayMs > 0) await context.sleep(chunk.delayMs);
    emitChunk(context, chunk, index === chunks.length - 1);
  }
}

function emitChunk({ node, runId, emit }: NodeContext, { text, meta }: ModelChunk, isLast: boolean): void {
  emit({ type: 'output.chunk', nodeId: node.id, payload: { nodeId: node.id, runId, chunk: text, isLast, meta } });
}

/** The provider, model and parameters of a node. The run overrides the node; the host fills in what neither says. */
export function modelChoice({ configurable, config }: NodeContext): ModelRequest {
  const { ai = {} } = configurable;
  const given = config as { provider?: string; model?: string; temperature?: number; maxTokens?: number };
  // A model name is only valid with its provider: the node's model is ignored when the run names another provider.
  const own = ai.provider === undefined || ai.provider === given.provider ? given.model : undefined;
  return defined({
    provider: ai.provider ?? given.provider,
    model: ai.model ?? configurable.model ?? own,
    temperature: configurable.temperature ?? given.temperature,
    maxTokens: configurable.maxTokens ?? given.maxTokens,
    stopSequences: (config as { stopSequences?: string[] }).stopSequences,
  });
}

/** Input ports that may hold the user's text; the first one with a string is used. */
const USER_TEXT_PORTS = ['prompt', 'text', 'message', 'content', 'input'] as const;

/** Builds the messages of a model call: the node's prompts, then its input if no user prompt is configured. */
export async function buildMessages(context: NodeContext): Promise<ModelMessage[]> {
  const prompts = await composePrompts(context);
  const composed = promptMessages(context, prompts);
  const { messages } = context.inputs;
  if (Array.isArray(messages)) return [...composed, ...messages.flatMap(parseMessage)];
  const hasUserPrompt = prompts.some(({ kind }) => kind === 'user') || typeof context.config.userPrompt === 'string';
  if (hasUserPrompt) return composed;
  const userText = USER_TEXT_PORTS.map((port) => context.inputs[port]).find((value) => typeof value === 'string');
  return userText === undefined ? composed : [...composed, { role: 'user', content: userText as string }];
}

/** Parses a message of an input port; a value that is no message is left out. */
function parseMessage(value: unknown): ModelMessage[] {
  if (!isObject(value)) return [];
  const { role, content: given, toolCallId, name, toolCalls } = value;
  const content = typeof given === 'string' ? given : JSON.stringify(given ?? '');
  if (role === 'system' || role === 'user') return [{ role, content }];
  if (role === 'assistant') {
    return [{ role, content, ...(Array.isArray(toolCalls) ? { toolCalls: toolCalls.flatMap(parseToolCall) } : {}) }];
  }
  if (role === 'tool') return [{ role, content, toolCallId: String(toolCallId), name: String(name) }];
  return [];
}

function parseToolCall(value: unknown): ToolCall[] {
  if (!isObject(value) || typeof value.name !== 'string') return [];
  return [{ id: String(value.id), name: value.name, arguments: value.arguments }];
}

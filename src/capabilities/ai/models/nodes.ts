import { type Static, Type } from 'typebox';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import { AnyObject, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { buildMessages, modelChoice } from '../../../runtime/ask-model.ts';
import type { ToolChoice } from '../../../runtime/effects/model.ts';
import type { NodeType, Outcome } from '../../../runtime/node-type.ts';
import { PROMPT_KEYS, promptRefProblems } from '../../../runtime/prompts.ts';
import { askForData, askForText, type ModelReply } from './structured.ts';

const Optional = Type.Optional;

const Asking = {
  ...PROMPT_KEYS,
  provider: NonEmpty,
  model: NonEmpty,
  temperature: Optional(Type.Number({ minimum: 0, maximum: 2 })),
  maxTokens: Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
  stopSequences: Optional(Type.Array(NonEmpty)),
};
const StructuredConfig = Type.Object({
  ...Asking,
  outputSchema: AnyObject,
  retryOnInvalidJson: Optional(Type.Integer({ minimum: 0, maximum: 5 })),
});
const ToolConfig = Type.Object({
  ...Asking,
  tools: Type.Array(Type.Object({ name: NonEmpty, description: Optional(Type.String()), inputSchema: AnyObject }), {
    minItems: 1,
  }),
  toolChoice: Optional(Type.Union([OneOf(['auto', 'none', 'required']), Type.Object({ name: NonEmpty })])),
});

/** The config of `callPrompt`; the conformance switch adds to it. */
export const CallPromptConfig = Type.Object({
  ...Asking,
  provider: Optional(NonEmpty),
  model: Optional(NonEmpty),
  promptId: Optional(Type.String({ description: 'A label' })),
  expectsStreaming: Optional(Type.Boolean({ description: 'A remark: the answer is always streamed' })),
  envelopeType: Optional(Type.String()),
});

/** Asks a model and streams its answer; needs no configuration. */
export const callPrompt: NodeType = {
  typeId: 'core.ai.callPrompt',
  description: 'Asks a model with a prompt.',
  outputs: () => ['content', 'finishReason', 'usage', 'model', 'envelope'],
  role: 'side-effect',
  readsEnvelopes: true,
  asksModel: true,
  config: CallPromptConfig,
  check: promptRefProblems,
  async run(context): Promise<Outcome> {
    const messages = await buildMessages(context);
    const reply = await askForText(context, {
      ...modelChoice(context),
      ...(messages.length > 0 ? { messages } : {}),
    });
    if ('interrupt' in reply) return reply;
    const { content, end } = reply.answer;
    const { finishReason, usage, model } = end;
    return { done: { outputs: { ...defined({ content, finishReason, usage, model }), ...envelopeIn(reply) } } };
  },
};

/** Asks a model for a text. */
const chatCompletion: NodeType = {
  typeId: 'core.ai.chatCompletion',
  description: 'Asks a model with a conversation.',
  outputs: () => ['content', 'finishReason', 'usage', 'model', 'envelope'],
  role: 'side-effect',
  readsEnvelopes: true,
  asksModel: true,
  config: Type.Object(Asking),
  check: promptRefProblems,
  async run(context): Promise<Outcome> {
    const reply = await askForText(context, { ...modelChoice(context), messages: await buildMessages(context) });
    if ('interrupt' in reply) return reply;
    return { done: { outputs: { content: reply.answer.content, ...factsOf(reply), ...envelopeIn(reply) } } };
  },
};

/** Asks a model for JSON that matches a schema. */
const structuredOutput: NodeType = {
  typeId: 'core.ai.structuredOutput',
  description: 'Asks a model for a value that fits a schema.',
  outputs: () => ['data', 'envelope', 'usage', 'model', 'retries'],
  role: 'side-effect',
  readsEnvelopes: true,
  asksModel: true,
  config: StructuredConfig,
  check: promptRefProblems,
  schemas: ({ outputSchema }) => [{ path: '.outputSchema', schema: outputSchema }],
  async run(context): Promise<Outcome> {
    const { outputSchema } = context.config as Static<typeof StructuredConfig>;
    const request = { ...modelChoice(context), messages: await buildMessages(context) };
    const reply = await askForData(context, request, outputSchema);
    if ('interrupt' in reply) return reply;
    const { said, usage, retries } = reply;
    const model = usage.at(-1)?.model;
    return { done: { outputs: defined({ ...said, usage: sumOf(usage), model, retries }) as JsonObject } };
  },
};

/** Asks a model that may request tool calls. The node outputs the requests; it does not call the tools. */
const toolCalling: NodeType = {
  typeId: 'core.ai.toolCalling',
  description: 'Asks a model that may call tools.',
  outputs: () => ['content', 'toolCalls', 'finishReason', 'usage', 'model', 'envelope'],
  role: 'side-effect',
  readsEnvelopes: true,
  asksModel: true,
  config: ToolConfig,
  check: promptRefProblems,
  async run(context): Promise<Outcome> {
    const { tools, toolChoice } = context.config as Static<typeof ToolConfig>;
    const reply = await askForText(context, {
      ...modelChoice(context),
      messages: await buildMessages(context),
      tools,
      toolChoice: toolChoice as ToolChoice | undefined,
    });
    if ('interrupt' in reply) return reply;
    const { content, end } = reply.answer;
    const { toolCalls = [] } = end;
    return { done: { outputs: { content, toolCalls, ...factsOf(reply), ...envelopeIn(reply) } } };
  },
};

/** The node types that ask models. */
export const MODEL_NODES: readonly NodeType[] = [callPrompt, chatCompletion, structuredOutput, toolCalling];

type CompleteReply = Exclude<ModelReply<string>, { readonly interrupt: unknown }>;

const FINISHES = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-call',
  content_filter: 'content-filter',
} as const;

/** The facts of the last answer; the usage is that of all of them. */
function factsOf({ answer: { end }, usage }: CompleteReply): JsonObject {
  return defined({
    finishReason: end.finishReason === undefined ? 'other' : FINISHES[end.finishReason],
    usage: usage.length > 0 ? sumOf(usage) : undefined,
    model: usage.at(-1)?.model ?? end.model,
  });
}

/** The envelope that the model sent instead of an answer. */
function envelopeIn({ said }: CompleteReply): JsonObject {
  return 'envelope' in said ? { envelope: said.envelope } : {};
}

function sumOf(calls: readonly ProviderUsage[]): JsonObject {
  const inputTokens = calls.reduce((sum, call) => sum + call.inputTokens, 0);
  const outputTokens = calls.reduce((sum, call) => sum + call.outputTokens, 0);
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

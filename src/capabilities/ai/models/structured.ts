import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { askModel, type ModelAnswer } from '../../../runtime/ask-model.ts';
import type { ModelMessage, ModelRequest } from '../../../runtime/effects/model.ts';
import type { NodeContext } from '../../../runtime/node-type.ts';
import { finalFailure, Mailbox, type Misfit, type Reception, Rounds } from '../envelopes/door.ts';

/** The token limit is multiplied by this after an answer that was cut off. */
export const LONGER_BY = 2;
/** The token limit that is multiplied if the request has none. */
const TOKENS_USUAL = 4_096;

/** The reply of a model: a complete one, or an interrupt that an envelope in it asks for. */
export type ModelReply<T> =
  | { readonly interrupt: Extract<Reception, { interrupt: unknown }>['interrupt'] }
  | CompleteReply<T>;

interface CompleteReply<T> {
  readonly answer: ModelAnswer;
  readonly usage: readonly ProviderUsage[];
  readonly retries: number;
  readonly said: { readonly data: T } | Extract<Reception, { envelope: unknown }>;
}

/** An answer that is not usable, and the request to make next. */
interface Unusable extends Misfit {
  readonly next: ModelRequest;
}

type Judge<T> = (answer: ModelAnswer, asked: ModelRequest) => Promise<{ readonly data: T } | Unusable>;

interface Asking<T> {
  readonly rounds: Rounds;
  /** Reads envelopes; without one they are answers like any other. */
  readonly mailbox?: Mailbox;
  readonly judge: Judge<T>;
}

/** Asks for a text. */
export function askForText(context: NodeContext, request: ModelRequest): Promise<ModelReply<string>> {
  const rounds = new Rounds(context);
  const mailbox = new Mailbox(context, rounds);
  return ask(context, request, { rounds, mailbox, judge: async ({ content }) => ({ data: content }) });
}

/** Asks for JSON that matches a schema, until it does or the limit is reached; the node fails if none matches. */
export function askForData(
  context: NodeContext,
  request: ModelRequest,
  schema: JsonObject,
): Promise<ModelReply<unknown>> {
  const rounds = new Rounds(context);
  const isAnswer = async (value: unknown) => (await context.schemas.validate(schema, value)).length === 0;
  const mailbox = new Mailbox(context, rounds, isAnswer);
  const judge: Judge<unknown> = (answer, asked) => judgeJson(context, answer, asked, schema);
  return ask(context, { ...request, outputSchema: schema }, { rounds, mailbox, judge });
}

/** Asks for JSON of somebody who may say nothing else: an envelope does not match the schema either. */
export async function askForJson(
  context: NodeContext,
  request: ModelRequest,
  schema: JsonObject,
): Promise<{ readonly data: unknown }> {
  const judge: Judge<unknown> = (answer, asked) => judgeJson(context, answer, asked, schema);
  const reply = await ask(context, { ...request, outputSchema: schema }, { rounds: new Rounds(context), judge });
  return (reply as CompleteReply<unknown>).said as { readonly data: unknown };
}

async function ask<T>(context: NodeContext, request: ModelRequest, asking: Asking<T>): Promise<ModelReply<T>> {
  const { rounds, mailbox, judge } = asking;
  const usage: ProviderUsage[] = [];
  let asked = mailbox ? withMessages(request, mailbox.brief(request.messages ?? [])) : request;
  for (;;) {
    const answer = await askModel(context, asked);
    if (answer.result.usage) usage.push(answer.result.usage);
    const received = await mailbox?.receive(answer, asked.messages ?? []);
    if (received && 'interrupt' in received) return received;
    if (received && 'messages' in received) {
      asked = withMessages(asked, received.messages);
      continue;
    }
    const said = received ?? (await judge(answer, asked));
    if (!('reason' in said)) return { answer, usage, retries: rounds.retries, said };
    rounds.again(said);
    asked = said.next;
  }
}

function withMessages(request: ModelRequest, messages: readonly ModelMessage[]): ModelRequest {
  return messages.length > 0 ? { ...request, messages } : request;
}

async function judgeJson(
  context: NodeContext,
  answer: ModelAnswer,
  asked: ModelRequest,
  schema: JsonObject,
): Promise<{ readonly data: unknown } | Unusable> {
  if (answer.result.refusal) throw refused(context, answer);
  if (answer.end.finishReason === 'length') return truncated(context, answer, asked);
  const read = readJsonAnswer(answer.content);
  if (!read) return corrected(asked, answer, 'parse-error', 'It is not JSON.');
  const problems = await context.schemas.validate(schema, read.value);
  if (problems.length > 0) return corrected(asked, answer, 'schema-violation', problems.join('; '));
  if (read.path !== 'direct') {
    const { path, byteOffset } = read;
    record(context, { type: 'envelope.recovery.applied', payload: { nodeId: context.node.id, path, byteOffset } });
  }
  return { data: read.value };
}

/** An answer that was cut off is requested again with a higher token limit. */
function truncated(context: NodeContext, answer: ModelAnswer, asked: ModelRequest): Unusable {
  const { content, result } = answer;
  const outputTokenCount = result.usage?.outputTokens;
  record(context, {
    type: 'envelope.truncated',
    payload: {
      ...sourceOf(context, answer),
      stopReason: result.stopReason ?? 'length',
      partialPayloadAvailable: content !== '',
      ...(outputTokenCount === undefined ? {} : { outputTokenCount }),
    },
  });
  const maxTokens = (asked.maxTokens ?? TOKENS_USUAL) * LONGER_BY;
  return { reason: 'truncation', problem: 'The answer was cut off.', next: { ...asked, maxTokens } };
}

/** The correction holds the validator's messages only: nothing the model said is repeated as an instruction. */
function corrected(asked: ModelRequest, { content }: ModelAnswer, reason: Misfit['reason'], problem: string): Unusable {
  const correction = `The answer does not fit the schema: ${problem} Answer again with JSON alone that fits.`;
  const more: ModelMessage[] = [
    { role: 'assistant', content },
    { role: 'user', content: correction },
  ];
  return { reason, problem, next: { ...asked, messages: [...(asked.messages ?? []), ...more] } };
}

function refused(context: NodeContext, answer: ModelAnswer) {
  const { result } = answer;
  const payload = { ...sourceOf(context, answer), refusalText: result.refusal!.text };
  record(context, { type: 'envelope.refusal', payload });
  return finalFailure('envelope_refusal', 'The model refused to answer.');
}

/** The node and the model that gave an answer; the usage names the model where the chunks do not. */
function sourceOf({ node }: NodeContext, { end, result: { usage } }: ModelAnswer) {
  const { provider = usage?.provider ?? 'unknown', model = usage?.model ?? 'unknown' } = end;
  return { nodeId: node.id, provider, model };
}

type Event = Parameters<NodeContext['emitStep']>[0];

function record({ node, emitStep }: NodeContext, event: Event): void {
  emitStep({ ...event, nodeId: node.id });
}

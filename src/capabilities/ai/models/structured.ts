import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
import type { ProviderUsage, RetryReason } from '../../../protocol/ai/models.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { askModel, type ModelAnswer } from '../../../runtime/ask-model.ts';
import type { ModelMessage, ModelRequest } from '../../../runtime/effects/model.ts';
import { type NodeContext, NodeFailure } from '../../../runtime/node-type.ts';

/** How often a model is asked for one answer. */
export const ATTEMPTS_MAX = 3;
/** The token limit is multiplied by this after an answer that was cut off. */
export const LONGER_BY = 2;
/** The token limit that is multiplied if the request has none. */
const TOKENS_USUAL = 4_096;

/** An answer that matches its schema. */
interface Structured {
  readonly data: unknown;
  readonly usage: readonly ProviderUsage[];
  readonly retries: number;
}

/** Why an answer is not usable, and the request to make next. */
interface Misfit {
  readonly reason: RetryReason;
  readonly problem: string;
  readonly next: ModelRequest;
}

/** Asks for JSON that matches a schema, at most ATTEMPTS_MAX times. Fails the node if no answer matches. */
export async function askForJson(context: NodeContext, request: ModelRequest, schema: JsonObject): Promise<Structured> {
  const check = compileSchema(schema);
  const usage: ProviderUsage[] = [];
  let asked: ModelRequest = { ...request, outputSchema: schema };
  let misfit: Misfit | undefined;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    if (misfit) recordRetry(context, attempt, misfit);
    const answer = await askModel(context, asked);
    if (answer.result.usage) usage.push(answer.result.usage);
    if (answer.result.refusal) throw refused(context, answer);
    const judged = judge(context, answer, asked, check);
    if ('data' in judged) return { data: judged.data, usage, retries: attempt - 1 };
    misfit = judged;
    asked = judged.next;
  }
  throw exhausted(context, misfit!);
}

function judge(
  context: NodeContext,
  answer: ModelAnswer,
  asked: ModelRequest,
  check: (value: unknown) => readonly string[],
): { readonly data: unknown } | Misfit {
  if (answer.end.finishReason === 'length') return truncated(context, answer, asked);
  const read = readJsonAnswer(answer.content);
  if (!read) return corrected(asked, answer, 'parse-error', 'It is not JSON.');
  const problems = check(read.value);
  if (problems.length > 0) return corrected(asked, answer, 'schema-violation', problems.join('; '));
  if (read.path !== 'direct') {
    const { path, byteOffset } = read;
    record(context, { type: 'envelope.recovery.applied', payload: { nodeId: context.node.id, path, byteOffset } });
  }
  return { data: read.value };
}

/** An answer that was cut off is requested again with a higher token limit. */
function truncated(context: NodeContext, answer: ModelAnswer, asked: ModelRequest): Misfit {
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
function corrected(asked: ModelRequest, { content }: ModelAnswer, reason: RetryReason, problem: string): Misfit {
  const correction = `The answer does not fit the schema: ${problem} Answer again with JSON alone that fits.`;
  const more: ModelMessage[] = [
    { role: 'assistant', content },
    { role: 'user', content: correction },
  ];
  return { reason, problem, next: { ...asked, messages: [...(asked.messages ?? []), ...more] } };
}

function recordRetry(context: NodeContext, attempt: number, { reason, problem }: Misfit): void {
  const payload = { nodeId: context.node.id, attempt, reason, previousError: problem };
  record(context, { type: 'envelope.retry.attempted', payload });
}

function refused(context: NodeContext, answer: ModelAnswer): NodeFailure {
  const { result } = answer;
  const payload = { ...sourceOf(context, answer), refusalText: result.refusal!.text };
  record(context, { type: 'envelope.refusal', payload });
  return failure('envelope_refusal', 'The model refused to answer.');
}

function exhausted(context: NodeContext, { reason, problem }: Misfit): NodeFailure {
  const { id: nodeId } = context.node;
  record(context, {
    type: 'envelope.retry.exhausted',
    payload: { nodeId, totalAttempts: ATTEMPTS_MAX, finalReason: reason, finalError: problem },
  });
  const limit = ATTEMPTS_MAX - 1;
  record(context, { type: 'cap.breached', payload: { kind: 'schema', limit, observed: ATTEMPTS_MAX, nodeId } });
  if (reason === 'truncation') {
    return failure(
      'envelope_truncation_unrecoverable',
      `All ${ATTEMPTS_MAX} answers were cut off at their token limit.`,
    );
  }
  return failure('envelope_invalid', `None of ${ATTEMPTS_MAX} answers matches the schema: ${problem}`);
}

/** The node and the model that gave an answer; the usage names the model where the chunks do not. */
function sourceOf({ node }: NodeContext, { end, result: { usage } }: ModelAnswer) {
  const { provider = usage?.provider ?? 'unknown', model = usage?.model ?? 'unknown' } = end;
  return { nodeId: node.id, provider, model };
}

type Event = Parameters<NodeContext['emit']>[0];

function record({ node, emit }: NodeContext, event: Event): void {
  emit({ ...event, nodeId: node.id });
}

/** Not retryable: the answers are recorded effects, so another attempt of the node would get the same ones. */
function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

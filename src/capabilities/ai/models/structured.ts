import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
import type { ProviderUsage, RetryReason } from '../../../protocol/ai/models.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { type Answer, askModel } from '../../../runtime/ask-model.ts';
import type { ModelMessage, ModelRequest } from '../../../runtime/effects/model.ts';
import { type NodeContext, NodeFailure } from '../../../runtime/node-type.ts';

/** Times that a model is asked for one answer. */
export const ATTEMPTS_MAX = 3;
/** An answer that was cut off may be so many times as long the next time. */
export const LONGER_BY = 2;
/** How long answers are that nobody has limited, as far as making them longer goes. */
const TOKENS_USUAL = 4_096;

export interface Structured {
  readonly data: unknown;
  readonly usage: readonly ProviderUsage[];
  readonly retries: number;
}

/** Why an answer will not do, and what to ask next. */
interface Misfit {
  readonly reason: RetryReason;
  readonly problem: string;
  readonly next: ModelRequest;
}

/** Asks for JSON that fits a schema, again if need be, and never more often than that. */
export async function askForJson(context: NodeContext, request: ModelRequest, schema: JsonObject): Promise<Structured> {
  const check = compileSchema(schema);
  const usage: ProviderUsage[] = [];
  let asked: ModelRequest = { ...request, outputSchema: schema };
  let misfit: Misfit | undefined;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    if (misfit) tellRetry(context, attempt, misfit);
    const answer = await askModel(context, asked);
    if (answer.result.usage) usage.push(answer.result.usage);
    if (answer.result.refusal) throw refused(context, answer);
    const judged = judge(context, answer, asked, check);
    if ('data' in judged) return { data: judged.data, usage, retries: attempt - 1 };
    misfit = judged;
    asked = judged.next;
  }
  throw givenUp(context, misfit!);
}

function judge(
  context: NodeContext,
  answer: Answer,
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
    tell(context, { type: 'envelope.recovery.applied', payload: { nodeId: context.node.id, path, byteOffset } });
  }
  return { data: read.value };
}

/** What was cut off says nothing about what would have come: it is asked for again, with room for more. */
function truncated(context: NodeContext, { content, result, end }: Answer, asked: ModelRequest): Misfit {
  const outputTokenCount = result.usage?.outputTokens;
  tell(context, {
    type: 'envelope.truncated',
    payload: {
      ...askedOf(context, end),
      stopReason: result.stopReason ?? 'length',
      partialPayloadAvailable: content !== '',
      ...(outputTokenCount === undefined ? {} : { outputTokenCount }),
    },
  });
  const maxTokens = (asked.maxTokens ?? TOKENS_USUAL) * LONGER_BY;
  return { reason: 'truncation', problem: 'The answer was cut off.', next: { ...asked, maxTokens } };
}

/** Only the validator speaks to the model: nothing of what it said comes back as an instruction. */
function corrected(asked: ModelRequest, { content }: Answer, reason: RetryReason, problem: string): Misfit {
  const correction = `The answer does not fit the schema: ${problem} Answer again with JSON alone that fits.`;
  const more: ModelMessage[] = [
    { role: 'assistant', content },
    { role: 'user', content: correction },
  ];
  return { reason, problem, next: { ...asked, messages: [...(asked.messages ?? []), ...more] } };
}

function tellRetry(context: NodeContext, attempt: number, { reason, problem }: Misfit): void {
  const payload = { nodeId: context.node.id, attempt, reason, previousError: problem };
  tell(context, { type: 'envelope.retry.attempted', payload });
}

function refused(context: NodeContext, { end, result }: Answer): NodeFailure {
  const payload = { ...askedOf(context, end), refusalText: result.refusal!.text };
  tell(context, { type: 'envelope.refusal', payload });
  return failure('envelope_refusal', 'The model would not answer.');
}

function givenUp(context: NodeContext, { reason, problem }: Misfit): NodeFailure {
  const { id: nodeId } = context.node;
  tell(context, {
    type: 'envelope.retry.exhausted',
    payload: { nodeId, totalAttempts: ATTEMPTS_MAX, finalReason: reason, finalError: problem },
  });
  const limit = ATTEMPTS_MAX - 1;
  tell(context, { type: 'cap.breached', payload: { kind: 'schema', limit, observed: ATTEMPTS_MAX, nodeId } });
  if (reason === 'truncation') {
    return failure('envelope_truncation_unrecoverable', 'The answer was cut off each time, however long it might be.');
  }
  return failure('envelope_invalid', `No answer of ${ATTEMPTS_MAX} fits the schema: ${problem}`);
}

function askedOf({ node }: NodeContext, { provider = 'mock', model = 'mock' }: Answer['end']) {
  return { nodeId: node.id, provider, model };
}

type Told = Parameters<NodeContext['emit']>[0];

function tell({ node, emit }: NodeContext, event: Told): void {
  emit({ ...event, nodeId: node.id });
}

/** The answers are remembered, so that another attempt at the node would get the same ones. */
function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

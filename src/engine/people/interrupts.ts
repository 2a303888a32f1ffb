import { type Refusal, refuse } from '../../protocol/errors.ts';
import { deepEqual, isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { Decision } from '../run/decision.ts';
import { isTerminal, type OpenInterrupt, type Run, statusOf } from '../run/run.ts';
import { type ApprovalData, decideApproval } from './approval.ts';
import { decideGate, type GateData } from './governance.ts';
import { type Question, type Resolver, settle } from './question.ts';
import { identify } from './separation.ts';

/** What a node asks of a person or an external system before it can continue. */
export interface InterruptRequest {
  readonly kind: OpenInterrupt['kind'];
  readonly data: JsonObject;
  /** JSON Schema that the answer must match. */
  readonly resumeSchema?: JsonObject | undefined;
  readonly timeoutMs?: number | undefined;
  /** Whose envelope it is lifted from. */
  readonly from?: EnvelopeOrigin | undefined;
}

/** The parts of an envelope that the events it leads to carry. */
export type EnvelopeOrigin = Pick<NewEvent, 'causationId' | 'contentTrust'>;

const KEY_CHARACTERS_MAX = 256;
/** Error code of a node whose interrupt expired, and of the refusal of a late answer. */
const EXPIRED = 'interrupt_expired';
const ANSWERED = refuse('interrupt_already_resolved', 'This interrupt has already been answered.');

/** The events that suspend a node. The key is unique per interrupt, so an answer to an earlier one never matches. */
export function suspendNode(run: Run, nodeId: string, request: InterruptRequest, interruptId: string): NewEvent[] {
  const { index } = run.plan.node(nodeId)!;
  const { interrupts } = run.nodes[index]!;
  const named = `${nodeId}:${interrupts}`;
  const key = named.length > KEY_CHARACTERS_MAX ? `node-${index}:${interrupts}` : named;
  const { kind, data, resumeSchema, timeoutMs, from = {} } = request;
  const events: NewEvent[] = [
    { type: 'node.suspended', nodeId, payload: { nodeId, interruptId, kind, key, ...lowConfidence(request) } },
    {
      type: 'interrupt.requested',
      nodeId,
      payload: {
        kind,
        key,
        data,
        ...(resumeSchema ? { resumeSchema } : {}),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      },
    },
    ...companionOf(nodeId, interruptId, request),
  ];
  return events.map((event) => ({ ...event, ...from }));
}

function lowConfidence({ kind, data }: InterruptRequest): JsonObject {
  if (kind !== 'low-confidence') return {};
  const { agentId, threshold, observed } = data;
  return { reason: 'low-confidence', agentId, threshold, observed };
}

/**
 * The older `approval.requested` and `clarification.requested` events, for readers that know only those. A governance
 * gate has its own events.
 */
function companionOf(nodeId: string, interruptId: string, { kind, data }: InterruptRequest): NewEvent[] {
  if (kind === 'clarification') {
    const questions = (data.questions as { id: string; question: string }[]).map(({ id, question }) => ({
      id,
      question,
    }));
    return [{ type: 'clarification.requested', nodeId, payload: { nodeId, questions, interruptId } }];
  }
  if (kind !== 'approval' || isGate(data)) return [];
  const { artifactId, artifactType, actions } = data as JsonObject & ApprovalData;
  // This event predates `edit-accept` and still calls it `edit`.
  const known = actions.map((action) => (action === 'edit-accept' ? 'edit' : action));
  return [{ type: 'approval.requested', nodeId, payload: { nodeId, artifactId, artifactType, actions: known } }];
}

function isGate(data: JsonObject): data is JsonObject & GateData {
  return typeof data.gateId === 'string';
}

/**
 * The interrupt that a node waits on, or the refusal for an answer to it. If `interruptId` is given, no other interrupt
 * is returned.
 */
export function openInterrupt(run: Run, nodeId: string, interruptId?: string): OpenInterrupt | Refusal {
  const planned = run.plan.node(nodeId);
  const state = planned && run.nodes[planned.index];
  if (state?.interrupt && (interruptId ?? state.interrupt.interruptId) !== state.interrupt.interruptId) return ANSWERED;
  if (state?.interrupt) return state.interrupt;
  if (state && state.interrupts > 0 && state.status === 'cancelled') {
    return refuse('interrupt_gone', 'The run ended before this interrupt was answered.', { runStatus: statusOf(run) });
  }
  if (state?.error?.code === EXPIRED) return refuse(EXPIRED, 'This interrupt has expired.');
  if (run.answered.has(nodeId)) return ANSWERED;
  return refuse('interrupt_not_found', 'This node has no open interrupt.');
}

/**
 * Decides what an answer does. A vote that does not complete the quorum is recorded and leaves the interrupt open. The
 * answer must have passed the checks that `answerChecks` lists.
 */
export function resolveInterrupt(
  run: Run,
  nodeId: string,
  value: unknown,
  by: Resolver,
  now: number = run.updatedAt,
): Decision {
  const interrupt = openInterrupt(run, nodeId);
  if ('refused' in interrupt) return interrupt;
  if (isTerminal(run)) return refuse('interrupt_gone', 'The run has ended.', { runStatus: statusOf(run) });
  const question: Question = { run, nodeId, interrupt, now };
  const decision = answers[interrupt.kind]?.(question, value, by) ?? settle(question, value, by.principal);
  const isAnswer = Array.isArray(decision) && decision.length > 0;
  return isAnswer ? [...identify(run, nodeId, by), ...decision] : decision;
}

type Answer = (question: Question, value: unknown, by: Resolver) => Decision;

const answers: Partial<Record<OpenInterrupt['kind'], Answer>> = {
  approval: (question, value, by) => {
    const { data } = question.interrupt;
    if (isGate(data)) return decideGate(question, data, value, by);
    return decideApproval(question, data as JsonObject & ApprovalData, value, by);
  },
  clarification: answerQuestions,
  'external-event': (question, value, by) => {
    const correlation = question.interrupt.data.correlation as JsonObject;
    const isMatch =
      isObject(value) && Object.entries(correlation).every(([key, wanted]) => deepEqual(value[key], wanted));
    if (isMatch) return settle(question, value, by.principal);
    return refuse('correlation_mismatch', 'The event does not match the correlation of the interrupt.', {
      correlation: Object.keys(correlation),
    });
  },
};

/** A part of an answer that must match a JSON Schema, and the refusal if it does not. */
interface AnswerCheck {
  readonly schema: JsonObject;
  readonly value: unknown;
  readonly refusal: (problem: string) => Refusal;
}

/** The checks of an answer that need a JSON Schema. They are separate because evaluating a schema can take long. */
export function answerChecks(interrupt: OpenInterrupt, value: unknown): AnswerCheck[] {
  const { resumeSchema, data, kind } = interrupt;
  const code = isGate(data) ? 'INVALID_RESUME_VALUE' : 'validation_error';
  const refusal = (problem: string): Refusal =>
    refuse(code, `The answer does not match the resume schema: ${problem}.`, { field: 'resumeValue' });
  const whole = resumeSchema ? [{ schema: resumeSchema, value, refusal }] : [];
  return kind === 'clarification' ? [...whole, ...questionChecks(interrupt, value)] : whole;
}

function questionChecks({ data }: OpenInterrupt, value: unknown): AnswerCheck[] {
  const given = answerMap(isObject(value) ? value.answers : undefined);
  return (data.questions as AskedQuestion[]).flatMap(({ id, schema }) => {
    const answer = given && own(given, id);
    if (!schema || answer === undefined) return [];
    const refusal = (problem: string): Refusal =>
      refuse('validation_error', `The answer to ${JSON.stringify(id)} does not match its schema: ${problem}.`, {
        field: `resumeValue.answers.${id}`,
      });
    return [{ schema, value: answer, refusal }];
  });
}

interface AskedQuestion {
  readonly id: string;
  readonly schema?: JsonObject;
}

/** Answers may be a map or a list; every question needs one. */
function answerQuestions(question: Question, value: unknown, by: Resolver): Decision {
  const asked = question.interrupt.data.questions as AskedQuestion[];
  const answersGiven = answerMap(isObject(value) ? value.answers : undefined);
  if (!answersGiven)
    return refuse('validation_error', 'The answer needs a member `answers`.', { field: 'resumeValue.answers' });
  const missing = asked.find(({ id }) => own(answersGiven, id) === undefined);
  if (missing) {
    const { id } = missing;
    const field = `resumeValue.answers.${id}`;
    return refuse('validation_error', `The question ${JSON.stringify(id)} has no answer.`, { field });
  }
  const { nodeId } = question;
  return [
    {
      type: 'clarification.resolved',
      nodeId,
      payload: { nodeId, answers: answersGiven, answeredBy: by.principal },
    },
    ...settle(question, { answers: answersGiven }, by.principal),
  ];
}

function answerMap(given: unknown): JsonObject | undefined {
  if (isObject(given)) return given;
  if (!Array.isArray(given) || !given.every((entry) => isObject(entry) && typeof entry.id === 'string'))
    return undefined;
  return Object.fromEntries(given.map(({ id, answer }) => [id, answer]));
}

/**
 * The events of an interrupt that timed out. Silence is not approval: an approval counts as rejected, and any other
 * interrupt fails its node.
 */
export function expireInterrupt(run: Run, nodeId: string): NewEvent[] {
  const { interrupt } = run.nodes[run.plan.node(nodeId)!.index]!;
  const { interruptId, kind, data } = interrupt!;
  if (kind !== 'approval') {
    const error = { code: EXPIRED, message: 'Nobody answered in time.', retryable: false };
    return [{ type: 'node.failed', nodeId, payload: { nodeId, error } }];
  }
  const resumeValue = isGate(data) ? { decision: 'rejected', reason: 'timeout' } : { action: 'timeout' };
  const received: NewEvent[] = isGate(data)
    ? []
    : [{ type: 'approval.received', nodeId, payload: { nodeId, action: 'timeout' } }];
  return [
    ...received,
    {
      type: 'interrupt.resolved',
      nodeId,
      payload: { nodeId, interruptId, kind, resumeValue, outcome: 'rejected', reason: 'timeout' },
    },
    { type: 'node.resumed', nodeId, payload: { nodeId, interruptId, resumeValue } },
  ];
}

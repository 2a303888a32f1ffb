import { type Refusal, refuse } from '../../protocol/errors.ts';
import { deepEqual, isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import { compileSchema } from '../expressions/json-schema.ts';
import type { Decision } from '../run/commands.ts';
import { isTerminal, type OpenInterrupt, type Run, statusOf } from '../run/run.ts';
import { type ApprovalData, decideApproval } from './approval.ts';
import { decideGate, type GateData } from './governance.ts';
import { type Question, type Resolver, settle } from './question.ts';

/** What a node asks of somebody outside. */
export interface InterruptRequest {
  readonly kind: OpenInterrupt['kind'];
  readonly data: JsonObject;
  readonly resumeSchema?: JsonObject | undefined;
  readonly timeoutMs?: number | undefined;
}

const KEY_CHARACTERS_MAX = 256;
/** What a node fails with, and a late answer is told. */
const EXPIRED = 'interrupt_expired';
const ANSWERED = refuse('interrupt_already_resolved', 'This was answered already.');

/** The events of a node that asks. Its key is new with each question, so an old answer never fits. */
export function suspendNode(run: Run, nodeId: string, request: InterruptRequest, interruptId: string): NewEvent[] {
  const { index } = run.plan.node(nodeId)!;
  const { interrupts } = run.nodes[index]!;
  const named = `${nodeId}:${interrupts}`;
  const key = named.length > KEY_CHARACTERS_MAX ? `node-${index}:${interrupts}` : named;
  const { kind, data, resumeSchema, timeoutMs } = request;
  return [
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
}

function lowConfidence({ kind, data }: InterruptRequest): JsonObject {
  if (kind !== 'low-confidence') return {};
  const { agentId, threshold, observed } = data;
  return { reason: 'low-confidence', agentId, threshold, observed };
}

/** The older events that readers of approvals and clarifications know. A governance gate has its own. */
function companionOf(nodeId: string, interruptId: string, { kind, data }: InterruptRequest): NewEvent[] {
  if (kind === 'clarification') {
    const questions = (data.questions as { id: string; question: string }[]).map(({ id, question }) => ({
      id,
      question,
    }));
    return [{ type: 'clarification.requested', nodeId, payload: { nodeId, questions, interruptId } }];
  }
  if (kind !== 'approval' || isGate(data)) return [];
  const { artifactId, artifactType, actions } = data as unknown as ApprovalData;
  // This event's vocabulary is older than the actions': there it is still called `edit`.
  const known = actions.map((action) => (action === 'edit-accept' ? 'edit' : action));
  return [{ type: 'approval.requested', nodeId, payload: { nodeId, artifactId, artifactType, actions: known } }];
}

function isGate(data: JsonObject): boolean {
  return typeof data.gateId === 'string';
}

/** The interrupt that a node waits on, or why there is none to answer. Whoever means a certain one gets no other. */
export function openInterrupt(run: Run, nodeId: string, interruptId?: string): OpenInterrupt | Refusal {
  const planned = run.plan.node(nodeId);
  const state = planned && run.nodes[planned.index];
  if (state?.interrupt && (interruptId ?? state.interrupt.interruptId) !== state.interrupt.interruptId) return ANSWERED;
  if (state?.interrupt) return state.interrupt;
  if (state && state.interrupts > 0 && state.status === 'cancelled') {
    return refuse('interrupt_gone', 'The run came to its end while it waited for this.', { runStatus: statusOf(run) });
  }
  if (state?.error?.code === EXPIRED) return refuse(EXPIRED, 'The time to answer this has passed.');
  if (run.answered.has(nodeId)) return ANSWERED;
  return refuse('interrupt_not_found', 'This node does not wait for an answer.');
}

/** What an answer does. Votes that do not decide yet are recorded and leave the question open. */
export function resolveInterrupt(run: Run, nodeId: string, value: unknown, by: Resolver): Decision {
  const interrupt = openInterrupt(run, nodeId);
  if ('refused' in interrupt) return interrupt;
  if (isTerminal(run)) return refuse('interrupt_gone', 'The run has ended.', { runStatus: statusOf(run) });
  const misfit = schemaMisfit(interrupt, value);
  if (misfit) return misfit;
  const question: Question = { run, nodeId, interrupt };
  return answers[interrupt.kind]?.(question, value, by) ?? settle(question, value, by.principal);
}

type Answer = (question: Question, value: unknown, by: Resolver) => Decision;

const answers: Partial<Record<OpenInterrupt['kind'], Answer>> = {
  approval: (question, value, by) =>
    isGate(question.interrupt.data)
      ? decideGate(question, question.interrupt.data as unknown as GateData, value, by)
      : decideApproval(question, question.interrupt.data as unknown as ApprovalData, value, by),
  clarification: answerQuestions,
  'external-event': (question, value, by) => {
    const correlation = question.interrupt.data.correlation as JsonObject;
    const isMeant =
      isObject(value) && Object.entries(correlation).every(([key, wanted]) => deepEqual(value[key], wanted));
    if (isMeant) return settle(question, value, by.principal);
    return refuse('correlation_mismatch', 'The event is not the one that is waited for.', {
      correlation: Object.keys(correlation),
    });
  },
};

function schemaMisfit({ resumeSchema, data }: OpenInterrupt, value: unknown): Refusal | undefined {
  if (!resumeSchema) return undefined;
  const [problem] = compileSchema(resumeSchema)(value);
  if (problem === undefined) return undefined;
  const code = isGate(data) ? 'INVALID_RESUME_VALUE' : 'validation_error';
  return refuse(code, `The answer does not fit: ${problem}.`, { field: 'resumeValue' });
}

interface AskedQuestion {
  readonly id: string;
  readonly schema?: JsonObject;
}

/** Answers come as a map or as a list; every question needs one. */
function answerQuestions(question: Question, value: unknown, by: Resolver): Decision {
  const asked = question.interrupt.data.questions as AskedQuestion[];
  const answersGiven = answerMap(isObject(value) ? value.answers : undefined);
  if (!answersGiven) return refuse('validation_error', 'The answer needs `answers`.', { field: 'resumeValue.answers' });
  for (const { id, schema } of asked) {
    const field = `resumeValue.answers.${id}`;
    const answer = own(answersGiven, id);
    if (answer === undefined) return refuse('validation_error', 'A question has no answer.', { field });
    const [problem] = schema ? compileSchema(schema)(answer) : [];
    if (problem) return refuse('validation_error', `An answer does not fit: ${problem}.`, { field });
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

/** Time is up. Nobody approves by silence: a gate is rejected; whatever else was waited for fails the node. */
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

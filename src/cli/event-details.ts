import type { EventPayload, EventType, RunEvent } from '../client/index.ts';
import { isObject, own } from '../protocol/format/json.ts';
import { errorText, formatDuration, shortText } from './text.ts';

/** What the events of a type say, in one line, besides their type and node. Types without a row say nothing more. */
type Details = { readonly [T in EventType]?: (payload: EventPayload<T>) => string };

const spending = ({ dimension, consumed, limit }: EventPayload<'budget.exhausted'>): string =>
  `${dimension}: ${consumed} of ${limit}`;

const DETAILS: Details = {
  'run.failed': ({ error, failedNodeId }) =>
    [...(failedNodeId === undefined ? [] : [`at ${failedNodeId}:`]), errorText(error)].join(' '),
  'run.cancelled': ({ reason, cancelledBy }) => saidBy(cancelledBy, reason),
  'run.paused': ({ reason, pausedBy }) => saidBy(pausedBy, reason),
  'run.resumed': ({ reason, resumedBy, recovered }) =>
    recovered ? 'another host took the run over' : saidBy(resumedBy, reason),
  'node.started': ({ attempt }) => (attempt === 0 ? '' : `attempt ${attempt + 1}`),
  'node.failed': ({ error, attempts = 1 }) => errorText(error) + (attempts === 1 ? '' : `, after ${attempts} attempts`),
  'node.retried': ({ attempt, delayMs, lastError }) =>
    `attempt ${attempt} failed: ${errorText(lastError)}; attempt ${attempt + 1} in ${formatDuration(delayMs)}`,
  'node.skipped': ({ reason }) => (reason === undefined ? '' : skipReason(reason)),
  'node.cancelled': ({ reason = '' }) => reason,
  'node.suspended': ({ reason = '' }) => reason,
  'node.dispatched': ({ childRunId, childWorkflowId }) => `${childRunId} of ${childWorkflowId}`,
  'interrupt.requested': ({ kind, data: { title } }) => (typeof title === 'string' ? `${kind}: ${title}` : kind),
  'interrupt.resolved': (payload) => resolutionText(payload),
  'approval.granted': ({ principal, quorumProgress }) =>
    `by ${principal}${quorumProgress ? `, ${quorumProgress.granted} of ${quorumProgress.required}` : ''}`,
  'approval.rejected': ({ principal, reason }) => saidBy(principal, reason),
  'approval.overridden': ({ principal, reason }) => saidBy(principal, reason),
  'authorization.decided': ({ principal, action, allowed, reason }) =>
    `${principal} ${allowed ? 'may' : 'may not'} ${action}${reason === undefined ? '' : `: ${reason}`}`,
  'approval.received': ({ action, decidedBy, comment }) => `${action} ${saidBy(decidedBy, comment)}`,
  'clarification.requested': ({ questions }) => questions.map(({ question }) => question).join(' '),
  'clarification.resolved': ({ answers, answeredBy }) => `${saidBy(answeredBy, undefined)} ${shortText(answers)}`,
  'artifact.created': ({ artifactId, artifactType }) => `${artifactId} (${artifactType})`,
  'variable.changed': ({ name, next }) => `${name} = ${shortText(next)}`,
  'channel.written': ({ channel, value }) => `${channel} = ${shortText(value)}`,
  'output.chunk': ({ chunk }) => JSON.stringify(chunk),
  'log.appended': ({ level, ...said }) => `${level}: ${logText(said)}`,
  'provider.usage': ({ provider, model, inputTokens, outputTokens, costEstimateUsd }) =>
    `${provider} ${model}: ${inputTokens} tokens in, ${outputTokens} out` +
    (costEstimateUsd === undefined ? '' : `, ${costEstimateUsd} USD`),
  'envelope.retry.attempted': ({ attempt, reason, previousError }) =>
    `attempt ${attempt} after ${reason}${previousError === undefined ? '' : `: ${previousError}`}`,
  'envelope.retry.exhausted': ({ totalAttempts, finalReason, finalError }) =>
    `${finalReason} after ${totalAttempts} attempts${finalError === undefined ? '' : `: ${finalError}`}`,
  'envelope.refusal': ({ model, refusalText }) => `${model} refused${refusalText ? `: ${refusalText}` : ''}`,
  'envelope.truncated': ({ model, stopReason }) => `${model} stopped early: ${stopReason}`,
  'envelope.recovery.applied': ({ path }) => path,
  'model.capability.insufficient': ({ model, missingCapabilities }) =>
    `${model} lacks ${missingCapabilities.join(', ')}`,
  'budget.consumed': spending,
  'budget.threshold.crossed': (payload) => `${spending(payload)} (${payload.percent} %)`,
  'budget.exhausted': spending,
  'memory.written': ({ memoryRef, memoryId }) => `${memoryId} in ${memoryRef}`,
  'agent.memory.consolidated': ({ memoryRef, inputCount, outputCount }) =>
    `${inputCount} entries of ${memoryRef} became ${outputCount}`,
  'agent.invocation.started': ({ agentId, resolvedModel }) =>
    resolvedModel === undefined ? agentId : `${agentId} with ${resolvedModel}`,
  'agent.reasoned': ({ reasoning }) => reasoning,
  'agent.reasoning.delta': ({ delta }) => delta,
  'agent.toolCalled': ({ toolName, inputs }) =>
    inputs === undefined ? toolName : `${toolName} with ${shortText(inputs)}`,
  'agent.toolReturned': ({ toolName, status = 'ok', error }) =>
    `${toolName}: ${status}${error === undefined ? '' : `, ${errorText(error) || shortText(error)}`}`,
  'agent.handoff': ({ fromAgentId, toAgentId, reason }) =>
    `${fromAgentId} to ${toAgentId}${reason === undefined ? '' : `: ${reason}`}`,
  'agent.decided': ({ agentId, decision }) => `${agentId}: ${shortText(decision)}`,
  'runOrchestrator.decided': ({ agentId, decision }) => `${agentId}: ${shortText(decision)}`,
  'core.workflowChain.event': ({ phase, workerId, error }) =>
    [workerId, phase, ...(error ? [errorText(error)] : [])].join(' '),
  'core.workflowChain.confidence-escalated': ({ confidence, floor, escalationKind }) =>
    `confidence ${confidence} is below ${floor}: ${escalationKind}`,
  'agent.verified': ({ target, verdict }) => `${target}: ${verdict}`,
  'agent.invocation.completed': ({ agentId, outcome }) => `${agentId}: ${outcome}`,
  'proposal.created': ({ proposalId, kind }) => `${proposalId} (${kind})`,
  'proposal.activated': ({ proposalId, installedArtifactRef }) => `${proposalId} as ${installedArtifactRef}`,
  'goal.evaluated': ({ satisfied, runId }) => `${satisfied ? 'satisfied' : 'not satisfied'} by ${runId}`,
  'goal.closed': ({ finalState }) => finalState,
  'commitment.fired': ({ commitmentId, enqueuedRunId }) =>
    enqueuedRunId === undefined ? commitmentId : `${commitmentId} started ${enqueuedRunId}`,
  'cap.breached': ({ kind, observed, limit }) => `${kind}: ${observed}, the limit is ${limit}`,
  'replay.diverged': ({ atSequence, divergencePoint, divergenceKind }) =>
    ['from event', atSequence, divergencePoint, divergenceKind && `(${divergenceKind})`].filter(Boolean).join(' '),
  'replay.divergedAtRefusal': ({ atSequence, originalEnvelopeKind, replayEnvelopeKind }) =>
    `at event ${atSequence}: ${originalEnvelopeKind} became ${replayEnvelopeKind}`,
  'workflow.loopback-limit': ({ iterations, limit }) =>
    `${iterations} iterations${limit === undefined ? '' : `, the limit is ${limit}`}`,
  'capstan.child.changed': ({ childRunId, status }) => `${childRunId} ${status}`,
  'capstan.pause.requested': ({ reason, pausedBy }) => saidBy(pausedBy, reason),
};

/** Says in one line what an event says besides its type and node; a newer host may send types that have no row. */
export function eventDetail({ type, payload }: RunEvent): string {
  // The table pairs each type with its payload; that an event does so too is its own type.
  const detail = own(DETAILS, type) as ((payload: unknown) => string) | undefined;
  return (detail?.(payload) ?? '').trim();
}

/** What a node or the engine logged, with the fields that belong to it. */
export function logText({ message, fields = {} }: Pick<EventPayload<'log.appended'>, 'message' | 'fields'>): string {
  const named = Object.entries(fields).map(([name, value]) => `${name}=${shortText(value)}`);
  return named.length === 0 ? message : `${message} (${named.join(', ')})`;
}

const SKIP_REASONS: Readonly<Record<string, string>> = {
  disabled: 'it is disabled',
  edge_condition_false: 'the condition of its edge is false',
  nothing_failed: 'nothing before it failed',
  upstream_failed: 'a node before it failed',
  upstream_skipped: 'the nodes before it were skipped',
};

/** Why a node was skipped, in words. */
export function skipReason(reason: string): string {
  return own(SKIP_REASONS, reason) ?? reason;
}

/** Who answered an interrupt, with what, and the reason that they gave. */
function resolutionText({ resumeValue, resolvedBy, outcome, reason }: EventPayload<'interrupt.resolved'>): string {
  const answer = isObject(resumeValue) ? resumeValue : {};
  const what = outcome ?? answer.action ?? answer.decision ?? (resumeValue === undefined ? '' : shortText(resumeValue));
  return `${what} ${saidBy(resolvedBy, reason ?? answer.reason)}`;
}

/** Who did something, and why: `by ada: too expensive`. */
export function saidBy(who: string | undefined, reason: unknown): string {
  const by = who === undefined ? '' : `by ${who}`;
  if (typeof reason !== 'string' || reason === '') return by;
  return by === '' ? reason : `${by}: ${reason}`;
}

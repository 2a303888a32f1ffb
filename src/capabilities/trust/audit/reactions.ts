import { eventRows } from '../../../protocol/running/event-rows.ts';
import type { EventType, RunEvent } from '../../../protocol/running/events.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Audit, AuditRecord } from './door.ts';

/** What the audit log records of an event. */
type Fact = Pick<AuditRecord, 'actor' | 'action' | 'target' | 'outcome' | 'details'>;

/** Records what people do to runs, in the unit that appends their events. */
export function auditReaction(audit: Pick<Audit, 'record'>): Reaction {
  return (append) => {
    if (append.isInherited) return [];
    const { tenant, workspace } = append.identity.subject;
    return factsOf(append).flatMap((fact) =>
      audit.record({ tenant, workspace, target: append.run.facts.runId, ...fact }),
    );
  };
}

function factsOf(append: Append): Fact[] {
  const { events } = append;
  // Events that are appended together with the creation of a run follow from it: only the creation is audited.
  const counted = events[0]?.type === 'run.started' ? events.slice(0, 1) : events;
  return counted.flatMap((event) => factOf(event, append) ?? []);
}

function factOf(event: RunEvent, append: Append): Fact | undefined {
  return factRowOf(event.type)?.(event, append);
}

type FactOf<T extends EventType> = (event: RunEvent<T>, append: Append) => Fact | undefined;

/** No principal did it, or what they did is recorded with another event. */
const notAudited = (): undefined => undefined;

/** What the audit log records of each event type, in the order of the event registry. */
export const AUDITED_EVENTS: { readonly [T in EventType]: FactOf<T> } = {
  'run.started': runCreated,
  'run.completed': notAudited,
  'run.failed': notAudited,
  'run.cancelled': ({ payload }) => by(payload.cancelledBy, 'run.cancel', { reason: payload.reason }),
  'run.paused': paused,
  'run.resumed': ({ payload }) => by(payload.resumedBy, 'run.resume', { reason: payload.reason }),
  'node.started': notAudited,
  'node.completed': notAudited,
  'node.failed': notAudited,
  'node.retried': notAudited,
  'node.skipped': notAudited,
  'node.cancelled': notAudited,
  'node.suspended': notAudited,
  'node.resumed': notAudited,
  'node.dispatched': notAudited,
  'interrupt.requested': notAudited,
  'interrupt.resolved': ({ nodeId, payload }) =>
    by(payload.resolvedBy, 'interrupt.resolve', { nodeId, interruptId: payload.interruptId }),
  'approval.granted': ({ payload }) => by(payload.principal, 'gate.grant', { gateId: payload.gateId }),
  'approval.rejected': ({ payload }) =>
    by(payload.principal, 'gate.reject', { gateId: payload.gateId, reason: payload.reason }),
  'approval.overridden': ({ payload }) =>
    by(payload.principal, 'gate.override', { gateId: payload.gateId, reason: payload.reason }),
  'authorization.decided': ({ payload }) => (payload.allowed ? undefined : denial(payload)),
  'approval.requested': notAudited,
  'approval.received': notAudited,
  'clarification.requested': notAudited,
  'clarification.resolved': notAudited,
  'artifact.created': notAudited,
  'variable.changed': notAudited,
  'channel.written': notAudited,
  'output.chunk': notAudited,
  'log.appended': notAudited,
  'agent.promptResolved': notAudited,
  'prompt.composed': notAudited,
  'version.pinned': notAudited,
  'provider.usage': notAudited,
  'envelope.retry.attempted': notAudited,
  'envelope.retry.exhausted': notAudited,
  'envelope.refusal': notAudited,
  'envelope.truncated': notAudited,
  'envelope.recovery.applied': notAudited,
  'model.capability.insufficient': notAudited,
  'budget.reserved': notAudited,
  'budget.consumed': notAudited,
  'budget.threshold.crossed': notAudited,
  'budget.exhausted': notAudited,
  'memory.written': notAudited,
  'agent.memory.consolidated': notAudited,
  'agent.invocation.started': notAudited,
  'agent.reasoned': notAudited,
  'agent.reasoning.delta': notAudited,
  'agent.toolCalled': notAudited,
  'agent.toolReturned': notAudited,
  'agent.handoff': notAudited,
  'agent.decided': notAudited,
  'runOrchestrator.decided': notAudited,
  'core.workflowChain.event': notAudited,
  'core.workflowChain.confidence-escalated': notAudited,
  'agent.verified': notAudited,
  'agent.invocation.completed': notAudited,
  'proposal.created': notAudited,
  'proposal.activated': notAudited,
  'goal.evaluated': notAudited,
  'goal.closed': notAudited,
  'commitment.fired': notAudited,
  'cap.breached': notAudited,
  'replay.diverged': notAudited,
  'replay.divergedAtRefusal': notAudited,
  'workflow.loopback-limit': notAudited,
  'capstan.child.changed': notAudited,
  'capstan.pause.requested': paused,
  'capstan.principal.identified': notAudited,
};
const factRowOf = eventRows<FactOf<EventType>>(AUDITED_EVENTS);

/** The start of a child, a fork or a management run follows from an action that is in the audit log already. */
function runCreated(_event: RunEvent, { run: { facts }, identity }: Append): Fact | undefined {
  if (facts.parent || facts.fork || isManagement(facts.workflowId)) return undefined;
  return { actor: identity.subject.principal, action: 'run.create', details: { workflowId: facts.workflowId } };
}

function paused({ payload }: RunEvent<'run.paused' | 'capstan.pause.requested'>): Fact | undefined {
  return by(payload.pausedBy, 'run.pause', { reason: payload.reason });
}

/** An event without a principal, such as a timeout, is in the run's own log only. */
function by(
  actor: string | undefined,
  action: AuditAction,
  details: Record<string, string | undefined>,
): Fact | undefined {
  return actor === undefined ? undefined : { actor, action, details };
}

function denial({ principal, action, resource }: { principal: string; action: string; resource: string }): Fact {
  return { actor: principal, action: 'authorization.deny', outcome: 'denied', details: { action, resource } };
}

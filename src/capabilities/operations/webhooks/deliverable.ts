import { own } from '../../../protocol/format/json.ts';
import type { EventTable, EventType } from '../../../protocol/running/events.ts';
import { isManagement } from '../../../protocol/running/management.ts';

/**
 * The runs of which webhooks get an event of each type, if they have subscribed to it. Subscribers get what management
 * runs record about proposals and goals, but not how these runs themselves proceed.
 */
export const DELIVERED: EventTable<'every-run' | 'no-management-run'> = {
  'run.started': 'no-management-run',
  'run.completed': 'no-management-run',
  'run.failed': 'no-management-run',
  'run.cancelled': 'no-management-run',
  'run.paused': 'no-management-run',
  'run.resumed': 'no-management-run',
  'node.started': 'every-run',
  'node.completed': 'every-run',
  'node.failed': 'every-run',
  'node.retried': 'every-run',
  'node.skipped': 'every-run',
  'node.cancelled': 'every-run',
  'node.suspended': 'every-run',
  'node.resumed': 'every-run',
  'node.dispatched': 'every-run',
  'interrupt.requested': 'every-run',
  'interrupt.resolved': 'every-run',
  'approval.granted': 'every-run',
  'approval.rejected': 'every-run',
  'approval.overridden': 'every-run',
  'authorization.decided': 'every-run',
  'approval.requested': 'every-run',
  'approval.received': 'every-run',
  'clarification.requested': 'every-run',
  'clarification.resolved': 'every-run',
  'artifact.created': 'every-run',
  'variable.changed': 'every-run',
  'channel.written': 'every-run',
  'output.chunk': 'every-run',
  'log.appended': 'every-run',
  'agent.promptResolved': 'every-run',
  'prompt.composed': 'every-run',
  'version.pinned': 'every-run',
  'provider.usage': 'every-run',
  'envelope.retry.attempted': 'every-run',
  'envelope.retry.exhausted': 'every-run',
  'envelope.refusal': 'every-run',
  'envelope.truncated': 'every-run',
  'envelope.recovery.applied': 'every-run',
  'model.capability.insufficient': 'every-run',
  'budget.reserved': 'every-run',
  'budget.consumed': 'every-run',
  'budget.threshold.crossed': 'every-run',
  'budget.exhausted': 'every-run',
  'memory.written': 'every-run',
  'agent.memory.consolidated': 'every-run',
  'agent.invocation.started': 'every-run',
  'agent.reasoned': 'every-run',
  'agent.reasoning.delta': 'every-run',
  'agent.toolCalled': 'every-run',
  'agent.toolReturned': 'every-run',
  'agent.handoff': 'every-run',
  'agent.decided': 'every-run',
  'runOrchestrator.decided': 'every-run',
  'core.workflowChain.event': 'every-run',
  'core.workflowChain.confidence-escalated': 'every-run',
  'agent.verified': 'every-run',
  'agent.invocation.completed': 'every-run',
  'proposal.created': 'every-run',
  'proposal.activated': 'every-run',
  'goal.evaluated': 'every-run',
  'goal.closed': 'every-run',
  'commitment.fired': 'every-run',
  'cap.breached': 'every-run',
  'replay.diverged': 'every-run',
  'replay.divergedAtRefusal': 'every-run',
  'workflow.loopback-limit': 'every-run',
  'capstan.child.changed': 'every-run',
  'capstan.pause.requested': 'every-run',
  'capstan.principal.identified': 'every-run',
};

/** Types that are not delivered from management runs. */
export const NOT_OF_MANAGEMENT_RUNS = (Object.keys(DELIVERED) as EventType[]).filter(
  (type) => DELIVERED[type] === 'no-management-run',
);

/** Whether webhooks get events of this type from runs of this workflow. */
export function isDelivered(workflowId: string, type: string): boolean {
  return !isManagement(workflowId) || own(DELIVERED, type) !== 'no-management-run';
}

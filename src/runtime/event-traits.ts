import { eventRows } from '../protocol/running/event-rows.ts';
import type { EventTable } from '../protocol/running/events.ts';

/** How the runtime treats events of one type. */
export interface EventTraits {
  /**
   * Where a replay takes the event from.
   * - `source`: copied from the source run. It came from outside the run, so nothing here could produce it again.
   * - `scheduler`: decided again by the scheduler, also about nodes that have effects.
   * - `node`: produced again by its node if that only computes, copied from the source if it has effects. An event
   *   that names no node is decided again.
   * - `none`: the event is only in management runs, which cannot be forked.
   */
  readonly replay: 'source' | 'scheduler' | 'node' | 'none';
  /**
   * What the event says about the call of a node.
   * - `ended`: the attempt is over: completed, failed, or failed with a retry to come.
   * - `suspended`: the node waits for an answer.
   * - `asked`: the question of a node that was suspended just before.
   * - `dispatched`: a child run was created for the node.
   * - `none`: nothing that came of a call.
   */
  readonly call: 'ended' | 'suspended' | 'asked' | 'dispatched' | 'none';
}

/** How the runtime treats each event type, in the order of the event registry. */
export const EVENT_TRAITS: EventTable<EventTraits> = {
  'run.started': { replay: 'scheduler', call: 'none' },
  'run.completed': { replay: 'scheduler', call: 'none' },
  'run.failed': { replay: 'scheduler', call: 'none' },
  'run.cancelled': { replay: 'scheduler', call: 'none' },
  'run.paused': { replay: 'source', call: 'none' },
  'run.resumed': { replay: 'source', call: 'none' },
  'node.started': { replay: 'scheduler', call: 'none' },
  'node.completed': { replay: 'node', call: 'ended' },
  'node.failed': { replay: 'node', call: 'ended' },
  'node.retried': { replay: 'node', call: 'ended' },
  'node.skipped': { replay: 'scheduler', call: 'none' },
  'node.cancelled': { replay: 'scheduler', call: 'none' },
  'node.suspended': { replay: 'node', call: 'suspended' },
  'node.resumed': { replay: 'source', call: 'none' },
  'node.dispatched': { replay: 'source', call: 'dispatched' },
  'interrupt.requested': { replay: 'node', call: 'asked' },
  'interrupt.resolved': { replay: 'source', call: 'none' },
  'approval.granted': { replay: 'source', call: 'none' },
  'approval.rejected': { replay: 'source', call: 'none' },
  'approval.overridden': { replay: 'source', call: 'none' },
  'authorization.decided': { replay: 'source', call: 'none' },
  'approval.requested': { replay: 'node', call: 'asked' },
  'approval.received': { replay: 'source', call: 'none' },
  'clarification.requested': { replay: 'node', call: 'asked' },
  'clarification.resolved': { replay: 'source', call: 'none' },
  'artifact.created': { replay: 'node', call: 'none' },
  'variable.changed': { replay: 'node', call: 'none' },
  'channel.written': { replay: 'node', call: 'none' },
  'output.chunk': { replay: 'node', call: 'none' },
  'log.appended': { replay: 'node', call: 'none' },
  'agent.promptResolved': { replay: 'node', call: 'none' },
  'prompt.composed': { replay: 'node', call: 'none' },
  'version.pinned': { replay: 'source', call: 'none' },
  'provider.usage': { replay: 'node', call: 'none' },
  'envelope.retry.attempted': { replay: 'node', call: 'none' },
  'envelope.retry.exhausted': { replay: 'node', call: 'none' },
  'envelope.refusal': { replay: 'node', call: 'none' },
  'envelope.truncated': { replay: 'node', call: 'none' },
  'envelope.recovery.applied': { replay: 'node', call: 'none' },
  'model.capability.insufficient': { replay: 'scheduler', call: 'none' },
  'budget.reserved': { replay: 'scheduler', call: 'none' },
  'budget.consumed': { replay: 'scheduler', call: 'none' },
  'budget.threshold.crossed': { replay: 'scheduler', call: 'none' },
  'budget.exhausted': { replay: 'node', call: 'none' },
  'memory.written': { replay: 'node', call: 'none' },
  'agent.memory.consolidated': { replay: 'node', call: 'none' },
  'agent.invocation.started': { replay: 'node', call: 'none' },
  'agent.reasoned': { replay: 'node', call: 'none' },
  'agent.reasoning.delta': { replay: 'node', call: 'none' },
  'agent.toolCalled': { replay: 'node', call: 'none' },
  'agent.toolReturned': { replay: 'node', call: 'none' },
  'agent.handoff': { replay: 'node', call: 'none' },
  'agent.decided': { replay: 'node', call: 'none' },
  'runOrchestrator.decided': { replay: 'node', call: 'none' },
  'core.workflowChain.event': { replay: 'node', call: 'none' },
  'core.workflowChain.confidence-escalated': { replay: 'node', call: 'none' },
  'agent.verified': { replay: 'node', call: 'none' },
  'agent.invocation.completed': { replay: 'node', call: 'none' },
  'proposal.created': { replay: 'none', call: 'none' },
  'proposal.activated': { replay: 'none', call: 'none' },
  'goal.evaluated': { replay: 'none', call: 'none' },
  'goal.closed': { replay: 'none', call: 'none' },
  'commitment.fired': { replay: 'source', call: 'none' },
  'cap.breached': { replay: 'node', call: 'none' },
  'replay.diverged': { replay: 'source', call: 'none' },
  'replay.divergedAtRefusal': { replay: 'source', call: 'none' },
  'workflow.loopback-limit': { replay: 'node', call: 'none' },
  'capstan.child.changed': { replay: 'source', call: 'none' },
  'capstan.pause.requested': { replay: 'source', call: 'none' },
  'capstan.principal.identified': { replay: 'source', call: 'none' },
};
const traitsRowOf = eventRows<EventTraits>(EVENT_TRAITS);

/** A newer host may have written types that this one does not know: those belong to their node. */
const UNKNOWN_TYPE: EventTraits = { replay: 'node', call: 'none' };

/** The traits of an event type, also of one that has no row. */
export function traitsOf(type: string): EventTraits {
  return traitsRowOf(type) ?? UNKNOWN_TYPE;
}

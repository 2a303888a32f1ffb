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
  /** Whether the event brings values into the run: what its text masks is then known to be sensitive in other events. */
  readonly bringsValues: boolean;
}

/** How the runtime treats each event type, in the order of the event registry. */
export const EVENT_TRAITS: EventTable<EventTraits> = {
  'run.started': { replay: 'scheduler', call: 'none', bringsValues: false },
  'run.completed': { replay: 'scheduler', call: 'none', bringsValues: false },
  'run.failed': { replay: 'scheduler', call: 'none', bringsValues: false },
  'run.cancelled': { replay: 'scheduler', call: 'none', bringsValues: false },
  'run.paused': { replay: 'source', call: 'none', bringsValues: false },
  'run.resumed': { replay: 'source', call: 'none', bringsValues: false },
  'node.started': { replay: 'scheduler', call: 'none', bringsValues: false },
  'node.completed': { replay: 'node', call: 'ended', bringsValues: true },
  'node.failed': { replay: 'node', call: 'ended', bringsValues: false },
  'node.retried': { replay: 'node', call: 'ended', bringsValues: false },
  'node.skipped': { replay: 'scheduler', call: 'none', bringsValues: false },
  'node.cancelled': { replay: 'scheduler', call: 'none', bringsValues: false },
  'node.suspended': { replay: 'node', call: 'suspended', bringsValues: false },
  'node.resumed': { replay: 'source', call: 'none', bringsValues: false },
  'node.dispatched': { replay: 'source', call: 'dispatched', bringsValues: false },
  'interrupt.requested': { replay: 'node', call: 'asked', bringsValues: false },
  'interrupt.resolved': { replay: 'source', call: 'none', bringsValues: false },
  'approval.granted': { replay: 'source', call: 'none', bringsValues: false },
  'approval.rejected': { replay: 'source', call: 'none', bringsValues: false },
  'approval.overridden': { replay: 'source', call: 'none', bringsValues: false },
  'authorization.decided': { replay: 'source', call: 'none', bringsValues: false },
  'approval.requested': { replay: 'node', call: 'asked', bringsValues: false },
  'approval.received': { replay: 'source', call: 'none', bringsValues: false },
  'clarification.requested': { replay: 'node', call: 'asked', bringsValues: false },
  'clarification.resolved': { replay: 'source', call: 'none', bringsValues: false },
  'artifact.created': { replay: 'node', call: 'none', bringsValues: false },
  'variable.changed': { replay: 'node', call: 'none', bringsValues: true },
  'channel.written': { replay: 'node', call: 'none', bringsValues: true },
  'output.chunk': { replay: 'node', call: 'none', bringsValues: false },
  'log.appended': { replay: 'node', call: 'none', bringsValues: false },
  'agent.promptResolved': { replay: 'node', call: 'none', bringsValues: false },
  'prompt.composed': { replay: 'node', call: 'none', bringsValues: false },
  'version.pinned': { replay: 'source', call: 'none', bringsValues: false },
  'provider.usage': { replay: 'node', call: 'none', bringsValues: false },
  'envelope.retry.attempted': { replay: 'node', call: 'none', bringsValues: false },
  'envelope.retry.exhausted': { replay: 'node', call: 'none', bringsValues: false },
  'envelope.refusal': { replay: 'node', call: 'none', bringsValues: false },
  'envelope.truncated': { replay: 'node', call: 'none', bringsValues: false },
  'envelope.recovery.applied': { replay: 'node', call: 'none', bringsValues: false },
  'model.capability.insufficient': { replay: 'scheduler', call: 'none', bringsValues: false },
  'budget.reserved': { replay: 'scheduler', call: 'none', bringsValues: false },
  'budget.consumed': { replay: 'scheduler', call: 'none', bringsValues: false },
  'budget.threshold.crossed': { replay: 'scheduler', call: 'none', bringsValues: false },
  'budget.exhausted': { replay: 'node', call: 'none', bringsValues: false },
  'memory.written': { replay: 'node', call: 'none', bringsValues: false },
  'agent.memory.consolidated': { replay: 'node', call: 'none', bringsValues: false },
  'agent.invocation.started': { replay: 'node', call: 'none', bringsValues: false },
  'agent.reasoned': { replay: 'node', call: 'none', bringsValues: false },
  'agent.reasoning.delta': { replay: 'node', call: 'none', bringsValues: false },
  'agent.toolCalled': { replay: 'node', call: 'none', bringsValues: false },
  'agent.toolReturned': { replay: 'node', call: 'none', bringsValues: false },
  'agent.handoff': { replay: 'node', call: 'none', bringsValues: false },
  'agent.decided': { replay: 'node', call: 'none', bringsValues: false },
  'runOrchestrator.decided': { replay: 'node', call: 'none', bringsValues: false },
  'core.workflowChain.event': { replay: 'node', call: 'none', bringsValues: false },
  'core.workflowChain.confidence-escalated': { replay: 'node', call: 'none', bringsValues: false },
  'agent.verified': { replay: 'node', call: 'none', bringsValues: false },
  'agent.invocation.completed': { replay: 'node', call: 'none', bringsValues: false },
  'proposal.created': { replay: 'none', call: 'none', bringsValues: false },
  'proposal.activated': { replay: 'none', call: 'none', bringsValues: false },
  'goal.evaluated': { replay: 'none', call: 'none', bringsValues: false },
  'goal.closed': { replay: 'none', call: 'none', bringsValues: false },
  'commitment.fired': { replay: 'source', call: 'none', bringsValues: false },
  'cap.breached': { replay: 'node', call: 'none', bringsValues: false },
  'replay.diverged': { replay: 'source', call: 'none', bringsValues: false },
  'replay.divergedAtRefusal': { replay: 'source', call: 'none', bringsValues: false },
  'workflow.loopback-limit': { replay: 'node', call: 'none', bringsValues: false },
  'capstan.child.changed': { replay: 'source', call: 'none', bringsValues: false },
  'capstan.pause.requested': { replay: 'source', call: 'none', bringsValues: false },
  'capstan.principal.identified': { replay: 'source', call: 'none', bringsValues: false },
};
const traitsRowOf = eventRows<EventTraits>(EVENT_TRAITS);

/** A newer host may have written types that this one does not know: those belong to their node. */
const UNKNOWN_TYPE: EventTraits = { replay: 'node', call: 'none', bringsValues: false };

/** The traits of an event type, also of one that has no row. */
export function traitsOf(type: string): EventTraits {
  return traitsRowOf(type) ?? UNKNOWN_TYPE;
}

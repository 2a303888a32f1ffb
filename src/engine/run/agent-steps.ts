import type { EventPayload, NewEvent } from '../../protocol/running/events.ts';
import { spend } from '../models/budget.ts';
import type { Envelope } from './fold.ts';
import type { NodeState, Run } from './run.ts';

/** What the events of agents do to a run. */
export const AGENT_ROWS = {
  'agent.invocation.started': countStep,
  'agent.promptResolved': countStep,
  'prompt.composed': countStep,
  'agent.reasoned': countStep,
  'agent.reasoning.delta': countStep,
  'agent.toolCalled': (run: Run, payload: EventPayload<'agent.toolCalled'>, envelope: Envelope): void => {
    spend(run.budget, 'toolCalls', 1);
    countStep(run, payload, envelope);
    const state = stateOf(run, envelope);
    if (state) state.toolCalls = new Map(state.toolCalls).set(payload.callId, envelope.eventId);
  },
  'agent.toolReturned': (run: Run, payload: EventPayload<'agent.toolReturned'>, envelope: Envelope): void => {
    countStep(run, payload, envelope);
    stateOf(run, envelope)?.toolCalls?.delete(payload.callId);
  },
  'agent.handoff': countStep,
  'memory.written': countStep,
  'agent.memory.consolidated': countStep,
  'agent.decided': countStep,
  'runOrchestrator.decided': (run: Run, payload: EventPayload<'runOrchestrator.decided'>, envelope: Envelope): void => {
    const { agentId, decision } = payload;
    const pinned = run.plan.node(envelope.nodeId ?? '')?.node.agent;
    run.decisions.push(decision);
    run.orchestrator ??= pinned?.agentId === agentId ? pinned : { agentId };
  },
  // What has failed may be tried again, and goes on then where it was.
  'agent.invocation.completed': (run: Run, payload: EventPayload<'agent.invocation.completed'>, envelope: Envelope) => {
    if (payload.outcome !== 'failed') countStep(run, payload, envelope);
  },
};

/** The log has one step more of the agent at this node: called again, the node tells those that come after. */
function countStep(run: Run, _payload: unknown, envelope: Envelope): void {
  const state = stateOf(run, envelope);
  if (state) state.agentSteps = (state.agentSteps ?? 0) + 1;
}

function stateOf(run: Run, { nodeId }: Pick<Envelope, 'nodeId'>): NodeState | undefined {
  return run.nodes[run.plan.node(nodeId ?? '')?.index ?? -1];
}

/** What comes back from a tool is because of the call. */
export function withCause(run: Run, event: NewEvent): NewEvent {
  if (event.type !== 'agent.toolReturned' || event.causationId !== undefined) return event;
  const causationId = stateOf(run, { nodeId: event.nodeId })?.toolCalls?.get(event.payload.callId);
  return causationId === undefined ? event : { ...event, causationId };
}

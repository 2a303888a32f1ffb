import type { EventPayload } from '../protocol/events.ts';
import { spend } from './budget.ts';
import type { Envelope } from './fold.ts';
import type { Run } from './run.ts';

/** What the events of agents do to a run. */
export const AGENT_ROWS = {
  'agent.invocation.started': countStep,
  'agent.promptResolved': countStep,
  'prompt.composed': countStep,
  'agent.reasoned': countStep,
  'agent.reasoning.delta': countStep,
  'agent.toolCalled': (run: Run, payload: unknown, envelope: Envelope): void => {
    spend(run.budget, 'toolCalls', 1);
    countStep(run, payload, envelope);
  },
  'agent.toolReturned': countStep,
  'agent.handoff': countStep,
  'agent.decided': countStep,
  // What has failed may be tried again, and goes on then where it was.
  'agent.invocation.completed': (run: Run, payload: EventPayload<'agent.invocation.completed'>, envelope: Envelope) => {
    if (payload.outcome !== 'failed') countStep(run, payload, envelope);
  },
};

/** The log has one step more of the agent at this node: called again, the node tells those that come after. */
function countStep(run: Run, _payload: unknown, { nodeId }: Envelope): void {
  const state = run.nodes[run.plan.node(nodeId ?? '')?.index ?? -1];
  if (state) state.agentSteps = (state.agentSteps ?? 0) + 1;
}

import type { EventPayload } from '../../protocol/running/events.ts';
import { spend } from '../models/budget.ts';
import type { Envelope } from './envelope.ts';
import type { ChildState, NodeState, Run } from './run.ts';

/** The transitions of a handoff that end a worker. */
export const WORKER_ENDS: ReadonlySet<string> = new Set(['child.completed', 'child.failed', 'child.cancelled']);

/** How agent events change a run; part of the table in `fold.ts`. */
export const AGENT_EVENT_HANDLERS = {
  'agent.invocation.started': countStep,
  'agent.promptResolved': countStep,
  'prompt.composed': countStep,
  'agent.reasoned': (run: Run, payload: EventPayload<'agent.reasoned'>, envelope: Envelope): void => {
    const state = stateOf(run, envelope);
    if (state) state.agentSteps = (state.agentSteps ?? 0) + (state.openDeltas ?? 0);
    delete state?.openDeltas;
    countStep(run, payload, envelope);
  },
  // They count once their reasoning is whole: a model that is asked again may think something else.
  'agent.reasoning.delta': (
    run: Run,
    { sequence }: EventPayload<'agent.reasoning.delta'>,
    envelope: Envelope,
  ): void => {
    const state = stateOf(run, envelope);
    if (state) state.openDeltas = sequence + 1;
  },
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
  'core.workflowChain.event': (
    run: Run,
    payload: EventPayload<'core.workflowChain.event'>,
    envelope: Envelope,
  ): void => {
    const { children = [] } = stateOf(run, envelope) ?? {};
    const child = children.find(({ runId }) => runId === payload.childRunId);
    if (child && WORKER_ENDS.has(payload.phase)) child.report = reportsOn(children) + 1;
    if (child && payload.phase === 'output.harvested') child.isHarvested = true;
  },
  'core.workflowChain.confidence-escalated': countStep,
  'agent.verified': (): void => {},
  // A failed invocation may be retried; the retry continues after the steps already in the log.
  'agent.invocation.completed': (run: Run, payload: EventPayload<'agent.invocation.completed'>, envelope: Envelope) => {
    if (payload.outcome !== 'failed') countStep(run, payload, envelope);
  },
};

/**
 * Counts a step that the log already has. When the node is called again, it skips this many steps and emits only later
 * ones.
 */
export function countStep(run: Run, _payload: unknown, envelope: Envelope): void {
  const state = stateOf(run, envelope);
  if (state) state.agentSteps = (state.agentSteps ?? 0) + 1;
}

function reportsOn(children: readonly ChildState[]): number {
  return children.filter(({ report }) => report !== undefined).length;
}

function stateOf(run: Run, { nodeId }: Pick<Envelope, 'nodeId'>): NodeState | undefined {
  return run.nodes[run.plan.node(nodeId ?? '')?.index ?? -1];
}

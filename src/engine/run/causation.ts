import { eventRows } from '../../protocol/running/event-rows.ts';
import type { EventType, NewEvent, RunEvent } from '../../protocol/running/events.ts';
import { DISPATCH } from '../definition/orchestration.ts';
import { WORKER_ENDS } from './agent-steps.ts';
import type { NodeCauses } from './causes.ts';
import type { NodeState, Run } from './run.ts';

/** An event as far as its place is concerned. */
type Located = Pick<NewEvent, 'nodeId'>;
type EventOf<T extends EventType> = Extract<NewEvent, { readonly type: T }>;
type Cause<T extends EventType> = (run: Run, event: EventOf<T>) => string | undefined;

/** Caused by somebody outside the run, or named by the one who records the event. */
const outside = (): undefined => undefined;
const byStart = (run: Run): string | undefined => run.causes.started;
const byFailure = (run: Run): string | undefined => run.failure?.causeId;
const bySpending = (run: Run): string | undefined => run.causes.spent;
const byReadiness = (run: Run, event: Located): string | undefined =>
  isDispatch(run, event) ? run.causes.decided : readinessOf(run, event);
const bySuspension = (run: Run, event: Located): string | undefined => causesOf(run, event)?.suspended;
const byQuestion = (run: Run, event: Located): string | undefined => causesOf(run, event)?.asked;

/** What the node was doing. What a dispatch node does, it does because of the supervisor's last decision. */
function byNode(run: Run, event: Located): string | undefined {
  const state = nodeOf(run, event);
  if (!state) return undefined;
  if (state.interrupt) return state.causes?.asked ?? state.causes?.suspended;
  return (isDispatch(run, event) ? run.causes.decided : state.causes?.acting) ?? readinessOf(run, event);
}

function byAgent(run: Run, event: Located): string | undefined {
  return causesOf(run, event)?.invoked ?? byNode(run, event);
}

/** A tool call that has not returned yet, otherwise what the agent or the node was doing. */
function byOpenCall(run: Run, event: Located): string | undefined {
  return [...(nodeOf(run, event)?.toolCalls?.values() ?? [])].at(-1) ?? byAgent(run, event);
}

function byDecision(run: Run, event: Located): string | undefined {
  return causesOf(run, event)?.decided ?? byAgent(run, event);
}

/** The cause of each event type, in the order of the event registry. */
export const CAUSES: { readonly [T in EventType]: Cause<T> } = {
  'run.started': outside,
  'run.completed': (run) => run.causes.settled ?? run.causes.started,
  'run.failed': byFailure,
  'run.cancelled': outside,
  'run.paused': (run) => (run.draining ? run.causes.pauseRequested : undefined),
  'run.resumed': outside,
  'node.started': byReadiness,
  'node.completed': byNode,
  'node.failed': byNode,
  'node.retried': byNode,
  'node.skipped': byReadiness,
  'node.cancelled': byFailure,
  'node.suspended': (run, event) => (isDispatch(run, event) ? byNode(run, event) : byDecision(run, event)),
  'node.resumed': (run, event) => causesOf(run, event)?.answered,
  'node.dispatched': byOpenCall,
  'interrupt.requested': bySuspension,
  'interrupt.resolved': byQuestion,
  'approval.granted': byQuestion,
  'approval.rejected': byQuestion,
  'approval.overridden': byQuestion,
  'authorization.decided': byQuestion,
  'approval.requested': bySuspension,
  'approval.received': byQuestion,
  'clarification.requested': bySuspension,
  'clarification.resolved': byQuestion,
  'artifact.created': byNode,
  'variable.changed': byNode,
  'channel.written': byNode,
  'output.chunk': byAgent,
  'log.appended': (run, event) => settledSource(run, event.payload.fields?.edgeId) ?? byNode(run, event),
  'agent.promptResolved': byAgent,
  'prompt.composed': byAgent,
  'version.pinned': byNode,
  'provider.usage': byAgent,
  'envelope.retry.attempted': byAgent,
  'envelope.retry.exhausted': byAgent,
  'envelope.refusal': byAgent,
  'envelope.truncated': byAgent,
  'envelope.recovery.applied': byAgent,
  'model.capability.insufficient': byReadiness,
  'budget.reserved': byStart,
  'budget.consumed': bySpending,
  'budget.threshold.crossed': (run) => run.causes.consumed,
  'budget.exhausted': (run, event) => run.causes.consumed ?? run.causes.spent ?? byNode(run, event),
  'memory.written': byOpenCall,
  'agent.memory.consolidated': byOpenCall,
  'agent.invocation.started': byNode,
  'agent.reasoned': byAgent,
  'agent.reasoning.delta': byAgent,
  'agent.toolCalled': byAgent,
  'agent.toolReturned': (run, event) => nodeOf(run, event)?.toolCalls?.get(event.payload.callId),
  'agent.handoff': byAgent,
  'agent.decided': byAgent,
  'runOrchestrator.decided': (run, event) => run.causes.turn ?? byDecision(run, event),
  'core.workflowChain.event': (run, event) => handoffCause(run, event),
  'core.workflowChain.confidence-escalated': byNode,
  'agent.verified': (run, { payload }) => run.causes.handoffs.get(payload.target),
  'agent.invocation.completed': byDecision,
  'proposal.created': byStart,
  'proposal.activated': (run) => run.causes.answered,
  'goal.evaluated': (run) => run.causes.verified,
  'goal.closed': (run) => run.causes.evaluated,
  'commitment.fired': byStart,
  'cap.breached': (run, event) => capCause(run, event),
  'replay.diverged': outside,
  'replay.divergedAtRefusal': byNode,
  'workflow.loopback-limit': (run) => run.causes.settled,
  'capstan.child.changed': (run, { payload }) => run.causes.children.get(payload.childRunId),
  'capstan.pause.requested': outside,
  'capstan.principal.identified': byQuestion,
};
const causeBy = eventRows<Cause<EventType>>(CAUSES);

/** Each transition of a handoff is caused by the one before it, the first one by the decision. */
function handoffCause(run: Run, event: EventOf<'core.workflowChain.event'>): string | undefined {
  const { phase, childRunId } = event.payload;
  if (phase === 'dispatch.began') return byNode(run, event);
  if (phase === 'dispatch.succeeded' || phase === 'dispatch.failed') return run.causes.began;
  return run.causes.handoffs.get(childRunId ?? '') ?? byNode(run, event);
}

function capCause(run: Run, event: EventOf<'cap.breached'>): string | undefined {
  const { kind } = event.payload;
  if (kind.startsWith('budget-')) return run.causes.exhausted ?? run.causes.spent;
  if (kind === 'run-duration') return run.causes.started;
  return kind === 'node-executions' ? byReadiness(run, event) : byAgent(run, event);
}

/** The event with the `causationId` that the state of the run gives it, unless it names its cause itself. */
export function withCausationId(run: Run, event: NewEvent): NewEvent {
  if (event.causationId !== undefined) return event;
  const causationId = causeBy(event.type)?.(run, event);
  return causationId === undefined ? event : { ...event, causationId };
}

/** The cause of a child run that a node asks for: the same as that of the event which records it. */
export function causeOfChild(run: Run, nodeId: string): string | undefined {
  return byOpenCall(run, { nodeId });
}

type Note<T extends EventType> = (run: Run, event: RunEvent<T>, node: NodeCauses) => void;

/** What later events need to know of an event. */
const NOTES: { readonly [T in EventType]?: Note<T> } = {
  'run.started': (run, { eventId }) => {
    run.causes.started = eventId;
    for (const index of [...run.ready, ...run.toSkip.keys()]) noteReady(run, index, eventId);
  },
  'run.resumed': (run, { eventId }) => {
    // Nodes that were cut off by the pause start again because of the resume.
    for (const index of run.ready) {
      const causes = nodeCauses(run.nodes[index]!);
      if (causes.acting !== undefined) causes.ready = eventId;
    }
  },
  'capstan.pause.requested': (run, { eventId }) => {
    run.causes.pauseRequested = eventId;
  },
  'node.started': act,
  'node.resumed': act,
  'node.completed': noteSettled,
  'node.failed': noteSettled,
  'node.skipped': noteSettled,
  'node.cancelled': noteSettled,
  'node.retried': (run, { eventId }, node) => {
    run.causes.spent = eventId;
    node.ready = eventId;
  },
  'node.suspended': (_run, { eventId }, node) => {
    node.suspended = eventId;
  },
  'interrupt.requested': (_run, { eventId }, node) => {
    node.asked = eventId;
  },
  'interrupt.resolved': (run, { eventId }, node) => {
    node.answered = eventId;
    run.causes.answered = eventId;
  },
  'workflow.loopback-limit': (_run, { eventId }, node) => {
    node.acting = eventId;
  },
  'node.dispatched': (run, { eventId, payload }) => void run.causes.children.set(payload.childRunId, eventId),
  'capstan.child.changed': (run, event, node) => {
    if (event.payload.spent) run.causes.spent = event.eventId;
    act(run, event, node);
  },
  'provider.usage': spend,
  'envelope.retry.attempted': spend,
  'agent.toolCalled': spend,
  'budget.consumed': (run, { eventId }) => {
    run.causes.consumed = eventId;
  },
  'budget.exhausted': (run, { eventId }) => {
    run.causes.exhausted = eventId;
  },
  'agent.invocation.started': (_run, { eventId }, node) => {
    node.invoked = eventId;
    node.decided = undefined;
  },
  'agent.decided': (run, event, node) => {
    node.decided = event.eventId;
    if (isDispatch(run, event)) run.causes.turn = event.eventId;
  },
  'agent.invocation.completed': (_run, _event, node) => {
    node.invoked = undefined;
  },
  'runOrchestrator.decided': (run, { eventId }) => {
    run.causes.decided = eventId;
    delete run.causes.turn;
  },
  'core.workflowChain.event': (run, { eventId, payload: { phase, childRunId } }) => {
    if (phase === 'dispatch.began') run.causes.began = eventId;
    if (childRunId !== undefined) run.causes.handoffs.set(childRunId, eventId);
    if (WORKER_ENDS.has(phase)) run.causes.turn = eventId;
  },
  'agent.verified': (run, { eventId }) => {
    run.causes.verified = eventId;
  },
  'goal.evaluated': (run, { eventId }) => {
    run.causes.evaluated = eventId;
    delete run.causes.verified;
  },
};
const noteOf = eventRows<Note<EventType>>(NOTES);

/** Remembers an event that later ones may name as their cause; called after it was applied. */
export function noteCause(run: Run, event: RunEvent): void {
  const note = noteOf(event.type);
  if (!note) return;
  const state = nodeOf(run, event);
  note(run, event, state ? nodeCauses(state) : {});
}

function act(run: Run, event: RunEvent, node: NodeCauses): void {
  node.acting = event.eventId;
  node.invoked = undefined;
  node.decided = undefined;
  if (isDispatch(run, event)) run.causes.turn = event.eventId;
}

function spend(run: Run, { eventId }: RunEvent): void {
  run.causes.spent = eventId;
}

function noteSettled(run: Run, { eventId, nodeId }: RunEvent, node: NodeCauses): void {
  run.causes.settled = eventId;
  node.settled = eventId;
  for (const { target } of run.plan.node(nodeId ?? '')?.outgoing ?? []) {
    if (run.nodes[target]!.status === 'ready' || run.toSkip.has(target)) noteReady(run, target, eventId);
  }
}

/** Of several events, the first one that made a node ready is the cause. */
function noteReady(run: Run, index: number, eventId: string): void {
  nodeCauses(run.nodes[index]!).ready ??= eventId;
}

function nodeCauses(state: NodeState): NodeCauses {
  state.causes ??= {};
  return state.causes;
}

function nodeOf(run: Run, { nodeId }: Located): NodeState | undefined {
  return run.nodes[run.plan.node(nodeId ?? '')?.index ?? -1];
}

function causesOf(run: Run, event: Located): NodeCauses | undefined {
  return nodeOf(run, event)?.causes;
}

function readinessOf(run: Run, event: Located): string | undefined {
  return causesOf(run, event)?.ready ?? run.causes.started;
}

function isDispatch(run: Run, { nodeId }: Located): boolean {
  return run.plan.node(nodeId ?? '')?.node.typeId === DISPATCH;
}

/** The end of the node that an edge comes from: it made the host evaluate the edge. */
function settledSource(run: Run, edgeId: unknown): string | undefined {
  const warning = typeof edgeId === 'string' ? run.warnings.get(edgeId) : undefined;
  const source = warning && run.plan.node(warning.edge.sourceNodeId);
  return source && run.nodes[source.index]!.causes?.settled;
}

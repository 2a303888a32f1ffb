import type { JsonObject } from '../../protocol/format/json.ts';
import { eventRows } from '../../protocol/running/event-rows.ts';
import type { EventPayload, EventType, RunEvent } from '../../protocol/running/events.ts';
import type { RunStatus } from '../../protocol/running/runs.ts';
import { assert } from '../assert.ts';
import type { Plan, PlannedNode } from '../definition/plan.ts';
import { learnFromEvent } from '../masking/learning.ts';
import { addChildSpending, spend } from '../models/budget.ts';
import { grantTtlOf } from '../people/separation.ts';
import { isApprovalKind, ownVerdict, type Verdict, verdictOf } from '../people/verdict.ts';
import { AGENT_EVENT_HANDLERS, countStep } from './agent-steps.ts';
import { noteCause } from './causation.ts';
import { type ChannelOptions, initialState, reduceWrite } from './channels.ts';
import { edgeResults } from './edge-result.ts';
import type { Envelope } from './envelope.ts';
import { detachFork, followFork } from './fork.ts';
import { resolveInputs } from './inputs.ts';
import { decide, leadingTo, makeAgain, reachableFrom, reopen, reopenGates, tallyOf, triggers } from './restart.ts';
import {
  type EdgeResult,
  emptyRun,
  isOver,
  isTerminal,
  type NodeInputs,
  type NodeState,
  type Run,
  type RunFacts,
} from './run.ts';
import { declaredChannel, forgetVisible } from './visible-variables.ts';

/** Rebuilds the state of a run from its events. */
export function fold(plan: Plan, facts: RunFacts, events: Iterable<RunEvent>): Run {
  const run = emptyRun(plan, facts);
  for (const event of events) apply(run, event);
  return run;
}

/** Applies one event in place; the caller must be the only owner of `run`. `time` is that of the event's timestamp. */
export function apply(run: Run, event: RunEvent, time = Date.parse(event.timestamp)): void {
  assert(event.sequence === run.sequence + 1, 'events must arrive in order, without gaps');
  assert(!isTerminal(run), `no event may follow the end of a run, got ${event.type}`);
  if (run.known) learnFromEvent(run.plan, run.known, event);
  // Unknown types are ignored: a newer host may have written them.
  rowOf(event.type)?.(run, event.payload, { time, nodeId: event.nodeId, eventId: event.eventId });
  noteCause(run, event);
  run.sequence = event.sequence;
  run.updatedAt = time;
  const { fork } = run.facts;
  if (!fork || isTerminal(run)) return;
  for (const { before, gates } of fork.reopenings ?? []) if (run.sequence === before - 1) reopenGates(run, gates);
  followFork(run, fork);
}

type Row<T extends EventType> = (run: Run, payload: EventPayload<T>, envelope: Envelope) => void;

const unchanged = (): void => {};

/**
 * How each event type changes a run. The mapped type makes the table complete: a new event type does not compile
 * without a row.
 */
const rows: { readonly [T in EventType]: Row<T> } = {
  'run.started': (run, _payload, { time }) => {
    run.startedAt = time;
    for (const planned of run.plan.nodes) if (planned.incoming.length === 0) decide(run, planned);
  },
  'run.completed': (run, _payload, { time }) => end(run, 'completed', time),
  'run.failed': (run, { error }, { time }) => {
    run.error = error;
    end(run, 'failed', time);
  },
  'run.cancelled': (run, _payload, { time }) => end(run, 'cancelled', time),
  'run.paused': (run, { drainPolicy }, { time }) => {
    run.pause = { at: run.draining?.at ?? time, drainPolicy };
    delete run.draining;
    if (drainPolicy === 'immediate') restartRunning(run);
  },
  'run.resumed': (run, { recovered }) => {
    if (recovered) return;
    delete run.pause;
    delete run.draining;
  },
  'capstan.pause.requested': (run, { reason }, { time }) => {
    run.draining = { at: time, reason };
  },

  'node.started': (run, { nodeId, attempt }, { time }) => {
    const [state, planned] = lookUp(run, nodeId);
    run.executions++;
    run.ready.delete(planned.index);
    // A log of an earlier release may start a node that the rules of this one would skip.
    run.toSkip.delete(planned.index);
    Object.assign(state, { status: 'running', attempt, startedAt: time, inputs: inputsAt(run, planned, time) });
    state.firstAttempt ??= attempt;
    state.resumedAt = undefined;
    state.childEndedAt = undefined;
    state.retryAt = undefined;
    state.additions = undefined;
    state.shown = undefined;
    state.children = undefined;
    run.active.add(planned.index);
  },
  'node.completed': (run, { nodeId, outputs }, { time }) => {
    const { answer } = lookUp(run, nodeId)[0];
    const [state, planned] = settle(run, nodeId, 'completed', time);
    if (state.isOutdated) return makeAgain(run, planned);
    if (outputs) {
      state.outputs = outputs;
      run.outputs[nodeId] = outputs;
    }
    propagate(run, planned, answer?.verdict ?? ownVerdict(planned.node.typeId, outputs));
  },
  'node.failed': (run, { nodeId, error }, { time, eventId }) => {
    const [state, planned] = settle(run, nodeId, 'failed', time);
    if (state.isOutdated) return makeAgain(run, planned);
    state.error = error;
    delete run.exhausted;
    // Otherwise a loop that exceeded its limit could continue through its own failure.
    if (planned.isCaught && error.code !== 'loopback_limit_exceeded') propagate(run, planned);
    else run.failure ??= { error, abort: false, failedNodeId: nodeId, causeId: eventId };
  },
  'node.retried': (run, { nodeId, attempt, delayMs, lastError }, { time }) => {
    const [state, planned] = lookUp(run, nodeId);
    Object.assign(state, { status: 'retrying', attempt, retryAt: time + delayMs, error: lastError });
    state.failures++;
    spend(run.budget, 'retries', 1);
    run.active.add(planned.index);
  },
  'node.skipped': (run, { nodeId, reason }, { time }) => {
    const [state, planned] = settle(run, nodeId, 'skipped', time);
    if (reason) state.reason = reason;
    run.toSkip.delete(planned.index);
    propagate(run, planned);
  },
  'node.cancelled': (run, { nodeId, reason }, { time }) => {
    const [state] = settle(run, nodeId, 'cancelled', time);
    if (reason) state.reason = reason;
  },
  'node.suspended': (run, { nodeId, interruptId, kind = 'custom', key = nodeId }, { time }) => {
    const [state, planned] = lookUp(run, nodeId);
    state.status = 'suspended';
    state.interrupts++;
    state.interrupt = { interruptId, kind, key, requestedAt: time, data: {}, votes: new Map() };
    state.answer = undefined;
    run.suspended.add(planned.index);
  },
  'interrupt.requested': (run, { data, resumeSchema, timeoutMs }, { nodeId, time }) => {
    const { interrupt } = lookUp(run, nodeId ?? '')[0];
    assert(interrupt, 'only a suspended node may request an interrupt');
    interrupt.data = data;
    if (resumeSchema) interrupt.resumeSchema = resumeSchema;
    if (timeoutMs !== undefined) interrupt.expiresAt = time + timeoutMs;
  },
  'interrupt.resolved': (run, { nodeId, interruptId, resumeValue, resolvedBy }, { time }) => {
    const [state, planned] = lookUp(run, nodeId);
    assert(state.interrupt?.interruptId === interruptId, 'an interrupt must be answered only once');
    run.answered.set(nodeId, interruptId);
    run.suspended.delete(planned.index);
    const { kind, data, requestedAt } = state.interrupt;
    state.waitedMs = time - requestedAt;
    const verdict = verdictOf(kind, resumeValue);
    state.answer = { value: resumeValue, verdict };
    if (resolvedBy && !isApprovalKind(kind)) run.authors.add(resolvedBy);
    const ttl = grantTtlOf(data);
    if (ttl !== undefined && verdict === 'granted') run.grants.set(planned.index, time + ttl);
    state.answers = [...(state.answers ?? []), resumeValue];
    state.interrupt = undefined;
  },
  'node.resumed': (run, { nodeId }, { time }) => {
    Object.assign(lookUp(run, nodeId)[0], { status: 'running', resumedAt: time });
  },
  'approval.received': (run, { nodeId, action, decidedBy }, { time }) => {
    if (!decidedBy) return;
    castVote(run, nodeId, decidedBy, action, time);
    // A label stands for somebody whom the program names: the program wrote it.
    if (action === 'edit-accept' || action === 'refine') run.authors.add(decidedBy.split('#')[0]!);
  },
  'approval.granted': (run, { principal }, { nodeId = '', time }) => castVote(run, nodeId, principal, 'granted', time),
  'approval.overridden': (run, { principal }, { nodeId = '', time }) =>
    castVote(run, nodeId, principal, 'overridden', time),
  'capstan.principal.identified': (run, { principal, person }) => void run.people.set(principal, person),
  'capstan.child.changed': (run, { nodeId, childRunId, status, ...bill }, { time }) => {
    if (bill.spent) addChildSpending(run.budget, childRunId, bill);
    const [state] = lookUp(run, nodeId);
    const child = state.children?.find(({ runId }) => runId === childRunId);
    if (!child) return;
    child.status = status as RunStatus;
    if (isOver(child)) state.childEndedAt = time;
  },
  'node.dispatched': (run, { childRunId }, { nodeId }) => {
    assert(nodeId, 'node.dispatched must name its node');
    const [state] = lookUp(run, nodeId);
    state.status = 'waiting';
    const turn = run.decisions.length > 0 ? { turn: run.decisions.length } : {};
    state.children = [...(state.children ?? []), { runId: childRunId, status: 'running', ...turn }];
  },

  'variable.changed': (run, { name, next }) => {
    if (next === undefined) delete run.variables[name];
    else run.variables[name] = next;
    forgetVisible(run);
  },
  'channel.written': (run, payload, envelope) => {
    const { channel, reducer, value, nodeId } = payload;
    countRecorded(run, 'additions', envelope);
    const options = channelOptions(run, channel, nodeId);
    const state = run.channels.get(channel) ?? initialState(reducer, options);
    run.channels.set(channel, reduceWrite(state, { reducer, value, now: envelope.time }, options));
    forgetVisible(run);
  },
  'version.pinned': (run, { changeId, version }) => {
    run.pins.set(changeId, version);
  },
  'provider.usage': (run, usage) => {
    const { inputTokens, outputTokens, costEstimateUsd = 0, nodeId } = usage;
    run.spending.add(usage);
    spend(run.budget, 'tokens', inputTokens + outputTokens);
    spend(run.budget, 'cost', costEstimateUsd);
    if (nodeId === undefined) return;
    const [state] = lookUp(run, nodeId);
    state.modelCalls = (state.modelCalls ?? 0) + 1;
  },
  'envelope.retry.attempted': (run, payload, envelope) => {
    spend(run.budget, 'retries', 1);
    countStep(run, payload, envelope);
  },
  'budget.reserved': (run) => {
    run.budget.isReserved = true;
  },
  'budget.consumed': (run, { dimension, consumed }) => {
    run.budget.reported[dimension] = consumed;
  },
  'budget.threshold.crossed': (run, { dimension }) => void run.budget.crossed.add(dimension),
  'budget.exhausted': (run, { dimension }) => void run.budget.exhausted.add(dimension),
  'cap.breached': (run, payload, envelope) => {
    const { kind, limit, nodeId } = payload;
    if (NODE_CAPS.has(kind)) countStep(run, payload, envelope);
    else run.failure = { error: capError(kind, limit), abort: true, failedNodeId: nodeId, causeId: envelope.eventId };
  },
  'replay.diverged': (run, { sourceRunId }) => {
    if (sourceRunId === run.facts.fork?.sourceRunId) detachFork(run);
  },
  'replay.divergedAtRefusal': (run, { sourceRunId, replayEnvelopeKind, nodeId }, envelope) => {
    // The log of a fork may have copied it from a source that was a replay itself; that one has failed of it, not this.
    if (sourceRunId !== run.facts.fork?.sourceRunId) return;
    detachFork(run);
    const change = replayEnvelopeKind === 'refusal' ? 'now refuses what it answered' : 'now answers what it refused';
    const error = { code: 'replay_diverged_at_refusal', message: `A model ${change} in the source run.` };
    run.failure = { error, abort: true, failedNodeId: nodeId, causeId: envelope.eventId };
  },
  ...AGENT_EVENT_HANDLERS,
  'log.appended': (run, payload, envelope) => {
    const { fields } = payload;
    if (typeof fields?.edgeId === 'string') run.warnings.delete(fields.edgeId);
    if (typeof fields?.envelopeType === 'string') countStep(run, payload, envelope);
    countRecorded(run, 'shown', envelope);
  },

  'approval.rejected': unchanged,
  'proposal.created': unchanged,
  'proposal.activated': unchanged,
  'goal.evaluated': unchanged,
  'commitment.fired': unchanged,
  'goal.closed': unchanged,
  'approval.requested': unchanged,
  'authorization.decided': unchanged,
  'clarification.requested': unchanged,
  'clarification.resolved': unchanged,
  'artifact.created': (run, _payload, envelope) => countRecorded(run, 'additions', envelope),
  'output.chunk': (run, _payload, envelope) => countRecorded(run, 'shown', envelope),
  'envelope.retry.exhausted': countStep,
  'envelope.refusal': countStep,
  'envelope.truncated': countStep,
  'envelope.recovery.applied': countStep,
  'model.capability.insufficient': unchanged,
  'workflow.loopback-limit': unchanged,
};
const rowOf = eventRows<Row<EventType>>(rows);

function lookUp(run: Run, nodeId: string): [NodeState, PlannedNode] {
  const planned = run.plan.node(nodeId);
  assert(planned, 'an event must refer to a node of the definition');
  return [run.nodes[planned.index]!, planned];
}

function castVote(run: Run, nodeId: string, voter: string, vote: string, time: number): void {
  const { interrupt } = lookUp(run, nodeId)[0];
  if (!interrupt) return;
  interrupt.votes.set(voter, vote);
  interrupt.votedAt = new Map(interrupt.votedAt).set(voter, time);
}

/** The inputs of an attempt. One that starts after an approval that it depends on has expired fails instead. */
function inputsAt(run: Run, planned: PlannedNode, time: number): NodeInputs {
  const expired = [...run.grants].filter(([, until]) => time >= until).map(([index]) => run.plan.nodes[index]!);
  const before = expired.length === 0 ? undefined : leadingTo(run.plan, planned);
  const gate = expired.find((granted) => granted !== planned && before!.has(granted));
  if (gate) {
    const message = `The approval of ${JSON.stringify(gate.node.id)} has expired.`;
    return { all: {}, declared: {}, problem: { code: 'approval_expired', message, retryable: false } };
  }
  return resolveInputs(run, planned);
}

/** Counts what the attempt of a node has recorded: whatever continues the attempt records only the rest. */
function countRecorded(run: Run, what: 'additions' | 'shown', { nodeId }: Envelope): void {
  const state = run.nodes[run.plan.node(nodeId ?? '')?.index ?? -1];
  if (state) state[what] = (state[what] ?? 0) + 1;
}

function end(run: Run, how: NonNullable<Run['ended']>, time: number): void {
  run.ended = how;
  run.endedAt = time;
}

function settle(
  run: Run,
  nodeId: string,
  status: 'completed' | 'failed' | 'skipped' | 'cancelled',
  time: number,
): [NodeState, PlannedNode] {
  const [state, planned] = lookUp(run, nodeId);
  assert(!isSettled(state), `a node must settle only once, got a second ${status}`);
  state.status = status;
  state.endedAt = time;
  state.inputs = undefined;
  state.retryAt = undefined;
  state.additions = undefined;
  state.interrupt = undefined;
  state.answer = undefined;
  state.answers = undefined;
  run.suspended.delete(planned.index);
  if (status === 'completed') state.error = undefined;
  run.active.delete(planned.index);
  run.ready.delete(planned.index);
  return [state, planned];
}

function isSettled({ status }: NodeState): boolean {
  return status === 'completed' || status === 'failed' || status === 'skipped' || status === 'cancelled';
}

/** An immediate pause aborts running attempts; after the resume they start again as new attempts. */
function restartRunning(run: Run): void {
  for (const index of [...run.active]) {
    const state = run.nodes[index]!;
    if (state.status !== 'running') continue;
    state.status = 'ready';
    state.attempt++;
    run.active.delete(index);
    run.ready.add(index);
  }
}

/** Records the result of a settled node on its outgoing edges and re-evaluates their targets. */
function propagate(run: Run, source: PlannedNode, verdict: Verdict = 'granted'): void {
  const loopbacks: PlannedNode[] = [];
  const resultOf = edgeResults(run, verdict);
  for (const planned of source.outgoing) {
    const target = run.plan.nodes[planned.target]!;
    const result = resultOf(planned);
    run.edgeResults.set(planned.edge.id, result);
    if (planned.isLoopback) {
      if (isTaken(target.rule, result)) loopbacks.push(target);
      continue;
    }
    const tally = run.tallies[target.index]!;
    tally.open--;
    tally[result]++;
    decide(run, target);
  }
  for (const target of loopbacks) restartFrom(run, target);
}

function isTaken(rule: PlannedNode['rule'], result: EdgeResult): boolean {
  return triggers[rule]({ open: 0, succeeded: 0, failed: 0, skipped: 0, [result]: 1 }) === 'start';
}

/**
 * A loopback edge was taken: the node starts again, and all nodes after it are reset. One that is at work, or waits for an
 * answer, ends first: nobody's answer to what was before counts for what comes now.
 */
function restartFrom(run: Run, first: PlannedNode): void {
  if (run.nodes[first.index]!.visit >= run.plan.maxLoopbacks) {
    run.exhausted = first.index;
    reopen(run, first);
    return;
  }
  const reached = reachableFrom(run.plan, first);
  const busy = new Set(reached.filter(({ index }) => run.active.has(index)));
  const following = reached.filter((planned) => !busy.has(planned));
  for (const { index } of busy) run.nodes[index]!.isOutdated = true;
  for (const planned of following) reopen(run, planned);
  for (const { index, incoming } of following) run.tallies[index] = tallyOf(run, incoming);
  if (busy.has(first)) return;
  run.nodes[first.index]!.status = 'ready';
  run.ready.add(first.index);
}

/** The bounds of a declared channel come from its declaration, those of others from the config of the writing node. */
function channelOptions(run: Run, channel: string, nodeId: string | undefined): ChannelOptions {
  const declared = declaredChannel(run, channel);
  if (declared) return declared;
  const config: JsonObject = (nodeId ? run.plan.node(nodeId)?.node.config : undefined) ?? {};
  return {
    ...(typeof config.ttlMs === 'number' ? { ttlMs: config.ttlMs } : {}),
    ...(typeof config.maxSize === 'number' ? { maxSize: config.maxSize } : {}),
  };
}

/** Caps on a node's model calls; exceeding one fails the node, not the run. */
const NODE_CAPS: ReadonlySet<string> = new Set(['clarification', 'schema', 'envelopes']);

const CAP_ERRORS: Record<string, string> = {
  'node-executions': 'recursion_limit_exceeded',
  'run-duration': 'run_timeout',
  'loop-iterations': 'loop_limit_exceeded',
  'budget-tokens': 'budget_exhausted',
  'budget-cost': 'budget_exhausted',
  'budget-tool-calls': 'budget_exhausted',
  'budget-retries': 'budget_exhausted',
};

function capError(kind: string, limit: number): { code: string; message: string } {
  return { code: CAP_ERRORS[kind] ?? 'cap_breached', message: `The run reached its limit of ${limit} (${kind}).` };
}

import { type JsonObject, own } from '../../protocol/format/json.ts';
import type { EventPayload, EventType, RunEvent } from '../../protocol/running/events.ts';
import type { RunStatus } from '../../protocol/running/runs.ts';
import { assert } from '../assert.ts';
import type { Plan, PlannedEdge, PlannedNode } from '../definition/plan.ts';
import { learnFromEvent } from '../masking/learning.ts';
import { addChildSpending, spend } from '../models/budget.ts';
import { ownVerdict, type Verdict, verdictOf } from '../people/verdict.ts';
import { AGENT_EVENT_HANDLERS, countStep } from './agent-steps.ts';
import { noteCause } from './causation.ts';
import { type ChannelOptions, initialState, reduceWrite } from './channels.ts';
import { edgeResult } from './edge-result.ts';
import type { Envelope } from './envelope.ts';
import { detachFork, followFork } from './fork.ts';
import { resolveInputs } from './inputs.ts';
import {
  declaredChannel,
  type EdgeResult,
  emptyRun,
  isTerminal,
  type NodeState,
  type Run,
  type RunFacts,
  type Tally,
} from './run.ts';

/** Rebuilds the state of a run from its events. */
export function fold(plan: Plan, facts: RunFacts, events: Iterable<RunEvent>): Run {
  const run = emptyRun(plan, facts);
  for (const event of events) apply(run, event);
  return run;
}

/** Applies one event in place; the caller must be the only owner of `run`. */
export function apply(run: Run, event: RunEvent): void {
  assert(event.sequence === run.sequence + 1, 'events must arrive in order, without gaps');
  assert(!isTerminal(run), `no event may follow the end of a run, got ${event.type}`);
  const time = Date.parse(event.timestamp);
  if (run.known) learnFromEvent(run.plan, run.known, event);
  // Unknown types are ignored: a newer host may have written them.
  const row = own(rows as Record<string, unknown>, event.type) as Row<EventType> | undefined;
  row?.(run, event.payload, { time, nodeId: event.nodeId, eventId: event.eventId });
  noteCause(run, event);
  run.sequence = event.sequence;
  run.updatedAt = time;
  const { fork } = run.facts;
  if (fork && !isTerminal(run)) followFork(run, fork);
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
    Object.assign(state, { status: 'running', attempt, startedAt: time, inputs: resolveInputs(run, planned) });
    delete state.resumedAt;
    delete state.retryAt;
    delete state.additions;
    delete state.children;
    run.active.add(planned.index);
  },
  'node.completed': (run, { nodeId, outputs }, { time }) => {
    const { answer } = lookUp(run, nodeId)[0];
    const [state, planned] = settle(run, nodeId, 'completed', time);
    if (outputs) {
      state.outputs = outputs;
      run.outputs[nodeId] = outputs;
    }
    propagate(run, planned, answer?.verdict ?? ownVerdict(planned.node.typeId, outputs));
  },
  'node.failed': (run, { nodeId, error }, { time, eventId }) => {
    const [state, planned] = settle(run, nodeId, 'failed', time);
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
    delete state.answer;
    run.suspended.add(planned.index);
  },
  'interrupt.requested': (run, { data, resumeSchema, timeoutMs }, { nodeId, time }) => {
    const { interrupt } = lookUp(run, nodeId ?? '')[0];
    assert(interrupt, 'only a suspended node may request an interrupt');
    interrupt.data = data;
    if (resumeSchema) interrupt.resumeSchema = resumeSchema;
    if (timeoutMs !== undefined) interrupt.expiresAt = time + timeoutMs;
  },
  'interrupt.resolved': (run, { nodeId, interruptId, resumeValue }) => {
    const [state, planned] = lookUp(run, nodeId);
    assert(state.interrupt?.interruptId === interruptId, 'an interrupt must be answered only once');
    run.answered.set(nodeId, interruptId);
    run.suspended.delete(planned.index);
    state.answer = { value: resumeValue, verdict: verdictOf(state.interrupt.kind, resumeValue) };
    state.answers = [...(state.answers ?? []), resumeValue];
    delete state.interrupt;
  },
  'node.resumed': (run, { nodeId }, { time }) => {
    Object.assign(lookUp(run, nodeId)[0], { status: 'running', resumedAt: time });
  },
  'approval.received': (run, { nodeId, action, decidedBy }) => {
    if (decidedBy) lookUp(run, nodeId)[0].interrupt?.votes.set(decidedBy, action);
  },
  'approval.granted': (run, { principal }, { nodeId }) => {
    lookUp(run, nodeId ?? '')[0].interrupt?.votes.set(principal, 'granted');
  },
  'approval.overridden': (run, { principal }, { nodeId }) => {
    lookUp(run, nodeId ?? '')[0].interrupt?.votes.set(principal, 'overridden');
  },
  'capstan.child.changed': (run, { nodeId, childRunId, status, ...bill }) => {
    if (bill.spent) addChildSpending(run.budget, childRunId, bill);
    const child = lookUp(run, nodeId)[0].children?.find(({ runId }) => runId === childRunId);
    if (child) child.status = status as RunStatus;
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
  },
  'channel.written': (run, payload, envelope) => {
    const { channel, reducer, value, nodeId } = payload;
    countAddition(run, payload, envelope);
    const options = channelOptions(run, channel, nodeId);
    const state = run.channels.get(channel) ?? initialState(reducer, options);
    run.channels.set(channel, reduceWrite(state, { reducer, value, now: envelope.time }, options));
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
  ...AGENT_EVENT_HANDLERS,
  'log.appended': (run, payload, envelope) => {
    const { fields } = payload;
    if (typeof fields?.edgeId === 'string') run.warnings.delete(fields.edgeId);
    if (typeof fields?.envelopeType === 'string') countStep(run, payload, envelope);
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
  'artifact.created': countAddition,
  'output.chunk': unchanged,
  'envelope.retry.exhausted': countStep,
  'envelope.refusal': countStep,
  'envelope.truncated': countStep,
  'envelope.recovery.applied': countStep,
  'model.capability.insufficient': unchanged,
  'workflow.loopback-limit': unchanged,
};

function lookUp(run: Run, nodeId: string): [NodeState, PlannedNode] {
  const planned = run.plan.node(nodeId);
  assert(planned, 'an event must refer to a node of the definition');
  return [run.nodes[planned.index]!, planned];
}

function countAddition(run: Run, _payload: unknown, { nodeId }: Envelope): void {
  const state = run.nodes[run.plan.node(nodeId ?? '')?.index ?? -1];
  if (state) state.additions = (state.additions ?? 0) + 1;
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
  delete state.inputs;
  delete state.retryAt;
  delete state.additions;
  delete state.interrupt;
  delete state.answer;
  delete state.answers;
  run.suspended.delete(planned.index);
  if (status === 'completed') delete state.error;
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
  for (const planned of source.outgoing) {
    const target = run.plan.nodes[planned.target]!;
    const result = edgeResult(run, planned, verdict);
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

/** A loopback edge was taken: the node starts again, and all nodes after it are reset. */
function restartFrom(run: Run, first: PlannedNode): void {
  if (run.nodes[first.index]!.visit >= run.plan.maxLoopbacks) {
    run.exhausted = first.index;
    reopen(run, first);
    return;
  }
  const following = reachableFrom(run.plan, first).filter(({ index }) => !run.active.has(index));
  for (const planned of following) reopen(run, planned);
  for (const { index, incoming } of following) run.tallies[index] = tallyOf(run, incoming);
  run.nodes[first.index]!.status = 'ready';
  run.ready.add(first.index);
}

/** The nodes that can be reached from a node without loopback edges, itself included. */
function reachableFrom(plan: Plan, first: PlannedNode): PlannedNode[] {
  const found = new Set([first]);
  for (const { outgoing } of found) {
    for (const { target, isLoopback } of outgoing) if (!isLoopback) found.add(plan.nodes[target]!);
  }
  return [...found];
}

/** Resets a node. Attempt numbers continue, so that no two attempts of a node share one. */
function reopen(run: Run, { index, outgoing }: PlannedNode): void {
  const { attempt, visit, interrupts, startedAt } = run.nodes[index]!;
  const nextAttempt = startedAt === undefined ? attempt : attempt + 1;
  run.nodes[index] = { status: 'pending', attempt: nextAttempt, failures: 0, visit: visit + 1, interrupts };
  run.toSkip.delete(index);
  run.ready.delete(index);
  // Loopback edges keep their result, because they deliver the inputs of the new iteration.
  for (const { edge, isLoopback } of outgoing) if (!isLoopback) run.edgeResults.delete(edge.id);
}

function tallyOf(run: Run, incoming: readonly PlannedEdge[]): Tally {
  const tally: Tally = { open: 0, succeeded: 0, failed: 0, skipped: 0 };
  for (const { edge } of incoming) tally[run.edgeResults.get(edge.id) ?? 'open']++;
  return tally;
}

type TriggerResult = 'start' | 'wait' | 'upstream_failed' | 'upstream_skipped';

/** Trigger rules: whether a node starts, waits, or is skipped and why. */
const triggers: Record<PlannedNode['rule'], (tally: Tally) => TriggerResult> = {
  all_success: ({ open, failed, succeeded }) => {
    if (open > 0) return 'wait';
    if (failed > 0) return 'upstream_failed';
    return succeeded > 0 ? 'start' : 'upstream_skipped';
  },
  any_success: ({ open, failed, succeeded }) => {
    if (succeeded > 0) return 'start';
    if (open > 0) return 'wait';
    return failed > 0 ? 'upstream_failed' : 'upstream_skipped';
  },
  all_complete: ({ open }) => (open > 0 ? 'wait' : 'start'),
  none_failed: ({ open, failed }) => {
    if (failed > 0) return 'upstream_failed';
    return open > 0 ? 'wait' : 'start';
  },
  any_failed: ({ open, failed }) => {
    if (failed > 0) return 'start';
    return open > 0 ? 'wait' : 'upstream_skipped';
  },
};

function decide(run: Run, planned: PlannedNode): void {
  const state = run.nodes[planned.index]!;
  if (state.status !== 'pending' || run.toSkip.has(planned.index)) return;
  const result = planned.incoming.length === 0 ? 'start' : triggers[planned.rule](run.tallies[planned.index]!);
  if (result === 'wait') return;
  if (result !== 'start') {
    run.toSkip.set(planned.index, skipReason(run, planned, result));
  } else if (planned.node.disabled) {
    run.toSkip.set(planned.index, 'disabled');
  } else {
    state.status = 'ready';
    run.ready.add(planned.index);
  }
}

function skipReason(run: Run, planned: PlannedNode, result: TriggerResult): string {
  if (result !== 'upstream_skipped') return result;
  const completed = planned.incoming.filter(({ source }) => run.nodes[source]!.status === 'completed');
  if (completed.some(({ condition }) => condition)) return 'edge_condition_false';
  return completed.length > 0 ? 'nothing_failed' : result;
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

import type { JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { WorkflowEdge } from '../../protocol/running/workflows.ts';
import type { PlannedNode } from '../definition/plan.ts';
import { budgetEvents } from '../models/budget.ts';
import { expireInterrupt } from '../people/interrupts.ts';
import { failAttempt } from './outcome.ts';
import { isOver, isTerminal, type NodeState, type Run } from './run.ts';

/** What a host does next: append these events, start these nodes. Both empty means that it waits. */
export interface Step {
  readonly events: readonly NewEvent[];
  readonly start: readonly PlannedNode[];
}

const WAIT: Step = { events: [], start: [] };

/**
 * The scheduler. Pure: the same run at the same time gives the same step, so "why is this run waiting?" is a function
 * call. `slots` is how many more nodes may run concurrently.
 */
export function next(run: Run, now: number, slots: number): Step {
  if (isTerminal(run) || run.pause) return WAIT;
  if (now > deadline(run) && !run.failure?.abort) return record(breachOfDuration(run, now));
  const timedOut = overdueAttempts(run, now);
  if (timedOut.length > 0) return record(...timedOut);
  const budget = budgetEvents(run);
  if (budget.length > 0) return record(...budget);
  if (run.failure) return record(...failRun(run));
  if (run.exhausted !== undefined) return record(...endLoop(run, run.exhausted));
  if (run.warnings.size > 0) return record(...logWarnings(run));
  if (run.toSkip.size > 0) return record(...skips(run));
  const overdue = overdueInterrupts(run, now);
  if (overdue.length > 0) return record(...overdue);
  if (run.draining) return isBusy(run) ? WAIT : record(pauseDrained(run));
  const isOver = run.active.size === 0 && run.ready.size === 0;
  return isOver ? record(completed(run)) : startReady(run, now, slots);
}

/**
 * When the run needs attention even if no event arrives (epoch ms): a retry, a timeout or its deadline. Undefined if
 * never.
 */
export function dueAt(run: Run): number | undefined {
  if (isTerminal(run) || run.pause) return undefined;
  let due = deadline(run) + 1;
  for (const index of run.active) {
    const state = run.nodes[index]!;
    if (state.retryAt !== undefined && !run.draining && !run.failure) due = Math.min(due, state.retryAt);
    due = Math.min(due, attemptDeadline(run.plan.nodes[index]!, state), state.interrupt?.expiresAt ?? due);
  }
  return Number.isFinite(due) ? due : undefined;
}

function record(...events: NewEvent[]): Step {
  return events.length === 0 ? WAIT : { events, start: [] };
}

function deadline(run: Run): number {
  return beganAt(run) + run.facts.limits.maxRunDurationMs;
}

/** When the run's clock started; a detached fork's first event is older than the fork itself. */
function beganAt({ startedAt, facts, leftSourceAt }: Run): number {
  return leftSourceAt ?? startedAt ?? facts.createdAt;
}

/** The time that a person took to answer does not count, nor that of child runs: those have limits of their own. */
function attemptDeadline({ timeoutMs }: PlannedNode, state: NodeState): number {
  if (timeoutMs === undefined || !isAtWork(state)) return Number.POSITIVE_INFINITY;
  const { startedAt = 0, resumedAt = startedAt, childEndedAt = resumedAt } = state;
  return Math.max(resumedAt, childEndedAt) + timeoutMs;
}

/** A node that has started child runs goes on when all of them have ended. */
function isAtWork({ status, children = [] }: NodeState): boolean {
  return status === 'running' || (status === 'waiting' && children.every(isOver));
}

function breachOfDuration(run: Run, now: number): NewEvent {
  const limit = run.facts.limits.maxRunDurationMs;
  return { type: 'cap.breached', payload: { kind: 'run-duration', limit, observed: now - beganAt(run) } };
}

function overdueAttempts(run: Run, now: number): NewEvent[] {
  const overdue: NewEvent[] = [];
  for (const index of run.active) {
    const planned = run.plan.nodes[index]!;
    if (now < attemptDeadline(planned, run.nodes[index]!)) continue;
    const message = `The attempt took longer than ${planned.timeoutMs} ms.`;
    overdue.push(failAttempt(run, planned.node.id, { code: 'node_timeout', message }));
  }
  return overdue;
}

function overdueInterrupts(run: Run, now: number): NewEvent[] {
  const overdue: NewEvent[] = [];
  for (const index of run.suspended) {
    const { expiresAt = Number.POSITIVE_INFINITY } = run.nodes[index]!.interrupt!;
    if (now >= expiresAt) overdue.push(...expireInterrupt(run, run.plan.nodes[index]!.node.id));
  }
  return overdue;
}

function endLoop(run: Run, index: number): NewEvent[] {
  const nodeId = run.plan.nodes[index]!.node.id;
  const limit = run.plan.maxLoopbacks;
  const message = `The node was sent back to more than ${limit} times.`;
  const error = { code: 'loopback_limit_exceeded', message, retryable: false };
  return [
    { type: 'workflow.loopback-limit', nodeId, payload: { nodeId, iterations: limit + 1, limit } },
    { type: 'node.failed', nodeId, payload: { nodeId, error } },
  ];
}

function logWarnings(run: Run): NewEvent[] {
  return [...run.warnings.values()].map(({ edge, reason }) => ({
    type: 'log.appended',
    payload: { level: 'warn', message: failedCondition(edge, reason), fields: { edgeId: edge.id } },
  }));
}

function failedCondition({ sourceNodeId, targetNodeId, condition }: WorkflowEdge, reason: string): string {
  const edge = `from ${JSON.stringify(sourceNodeId)} to ${JSON.stringify(targetNodeId)}`;
  const asked = condition?.expression ?? condition?.type;
  return `The condition of the edge ${edge} failed and counts as false: ${asked}: ${reason}.`;
}

function skips(run: Run): NewEvent[] {
  return [...run.toSkip].map(([index, reason]) => {
    const nodeId = run.plan.nodes[index]!.node.id;
    return { type: 'node.skipped', nodeId, payload: { nodeId, reason } };
  });
}

/** No new node starts. Nodes in flight may finish, unless a cap was breached; then they are cancelled. */
function failRun(run: Run): NewEvent[] {
  const { error, abort, failedNodeId, causeId } = run.failure!;
  if (!abort && isBusy(run)) return [];
  const cause = causeId ? { causationId: causeId } : {};
  return [
    ...cancelActive(run, abort ? error.code : 'run-failed'),
    { type: 'run.failed', payload: { error, ...(failedNodeId ? { failedNodeId } : {}) }, ...cause },
  ];
}

/** The events that cancel all nodes in flight. */
export function cancelActive(run: Run, reason: string): NewEvent[] {
  return activeNodes(run).map(([{ node }]) => ({
    type: 'node.cancelled',
    nodeId: node.id,
    payload: { nodeId: node.id, reason },
  }));
}

function pauseDrained(run: Run): NewEvent {
  const reason = run.draining?.reason;
  return { type: 'run.paused', payload: { drainPolicy: 'drain-current-node', ...(reason ? { reason } : {}) } };
}

/** Whether a node is executing, here or in a child run. Nodes that wait for a retry or a person do not count. */
export function isBusy(run: Run): boolean {
  return activeNodes(run).some(([, { status }]) => status === 'running' || status === 'waiting');
}

function activeNodes(run: Run): [PlannedNode, NodeState][] {
  return [...run.active].map((index) => [run.plan.nodes[index]!, run.nodes[index]!]);
}

function startReady(run: Run, now: number, slots: number): Step {
  const start: PlannedNode[] = [];
  const { maxNodeExecutions: limit } = run.facts.limits;
  for (const planned of candidates(run, now)) {
    if (start.length >= slots) break;
    if (run.executions + start.length >= limit) {
      return start.length > 0 ? { events: [], start } : record(breachOfExecutions(run, planned));
    }
    start.push(planned);
  }
  return start.length > 0 ? { events: [], start } : WAIT;
}

/** Nodes that may start now: due retries first, then ready nodes in topological order. */
function* candidates(run: Run, now: number): Generator<PlannedNode> {
  for (const [planned, { retryAt }] of activeNodes(run)) if (retryAt !== undefined && retryAt <= now) yield planned;
  for (const index of run.ready) yield run.plan.nodes[index]!;
}

function breachOfExecutions(run: Run, { node }: PlannedNode): NewEvent {
  const limit = run.facts.limits.maxNodeExecutions;
  return {
    type: 'cap.breached',
    nodeId: node.id,
    payload: { kind: 'node-executions', limit, observed: run.executions + 1, nodeId: node.id },
  };
}

/** The outputs of a run: those of the nodes without outgoing edges, by node id. */
export function finalOutputs({ plan, outputs }: Run): Record<string, JsonObject> {
  const last = plan.nodes.filter(({ node, outgoing }) => outgoing.length === 0 && outputs[node.id] !== undefined);
  return Object.fromEntries(last.map(({ node }) => [node.id, outputs[node.id] as JsonObject]));
}

function completed(run: Run): NewEvent {
  const outputs = finalOutputs(run);
  return { type: 'run.completed', payload: Object.keys(outputs).length > 0 ? { outputs } : {} };
}

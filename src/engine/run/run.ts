import type { OrchestratorDecision } from '../../protocol/ai/agents.ts';
import type { RunError } from '../../protocol/errors.ts';
import { type JsonObject, own } from '../../protocol/format/json.ts';
import type { DrainPolicy, InterruptKind, Owner } from '../../protocol/running/events.ts';
import type { ForkMode } from '../../protocol/running/forks.ts';
import type { Configurable, RunStatus } from '../../protocol/running/runs.ts';
import type { AgentRef, ChannelDeclaration } from '../../protocol/running/workflows.ts';
import type { Plan } from '../definition/plan.ts';
import { type BudgetState, emptyBudget } from '../models/budget.ts';
import { initialState } from './channels.ts';
import { ReadyList } from './ready-list.ts';

/** What is fixed when a run is created. It is kept on the run's row, beside the log, and never travels in events. */
export interface RunFacts {
  readonly runId: string;
  readonly workflowId: string;
  readonly owner: Owner;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly parent?: { readonly runId: string; readonly nodeId: string } | undefined;
  readonly createdAt: number;
  readonly engineVersion: number;
  readonly limits: RunLimits;
  readonly fork?: Fork | undefined;
}

/** Where a run comes from that began as a copy of another one's history. */
export interface Fork {
  readonly sourceRunId: string;
  /** Events before this sequence are the source's. */
  readonly fromSeq: number;
  readonly mode: ForkMode;
  /** The last event that the source had when the fork was made, leaving its cancellation aside. */
  readonly throughSeq: number;
  /** What the source's chances were drawn from. */
  readonly seed: string;
}

export interface RunLimits {
  readonly maxNodeExecutions: number;
  /** The smallest of the workflow's, the caller's and the host's limit. */
  readonly maxRunDurationMs: number;
}

export type NodeStatus =
  | 'pending'
  | 'ready'
  | 'running'
  | 'retrying'
  | 'waiting'
  | 'suspended'
  | 'completed'
  | 'failed'
  | 'skipped'
  | 'cancelled';

export interface NodeState {
  status: NodeStatus;
  /** Number of the attempt that runs or is due, from 0. */
  attempt: number;
  /** Attempts that failed and were retried. */
  failures: number;
  startedAt?: number;
  endedAt?: number;
  /** What the attempt was given, resolved from the state as it was when the attempt started. */
  inputs?: NodeInputs;
  outputs?: JsonObject;
  error?: RunError;
  reason?: string;
  retryAt?: number;
  /** Channel writes and artifacts that this attempt has recorded already. */
  additions?: number;
  /** Child runs of this attempt, in the order in which they were started. */
  children?: ChildState[];
  /** Model calls of this visit that the log has. */
  modelCalls?: number;
  /** Events of this visit in which the log tells what an agent did. */
  agentSteps?: number;
  /** Tools that an agent has asked for and not heard from: the call's id to the event that tells of it. */
  toolCalls?: Map<string, string>;
  /** Times the node began again because an edge led back to it. */
  visit: number;
  /** Interrupts it has raised in this run: the next one's key is new. */
  interrupts: number;
  /** What it waits to be told. */
  interrupt?: OpenInterrupt;
  /** What it was told; there until it settles or asks again. */
  answer?: { readonly value: unknown };
}

/** A child run, as far as its parent has noticed. */
export interface ChildState {
  readonly runId: string;
  status: RunStatus;
}

/** A question to somebody outside, not answered yet. */
export interface OpenInterrupt {
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly key: string;
  readonly requestedAt: number;
  data: JsonObject;
  resumeSchema?: JsonObject;
  expiresAt?: number;
  /** Votes so far, by who cast them; a second vote replaces the first. */
  readonly votes: Map<string, string>;
}

export interface NodeInputs {
  /** All ports: the run's inputs or what the edges deliver, under what the node declares. */
  readonly all: JsonObject;
  /** Only the ports that the node declares. */
  readonly declared: JsonObject;
  /** Set when a port could not be given its value; the attempt then fails with it, without running. */
  readonly problem?: RunError;
}

/** How many incoming edges of a node have come to what. */
export interface Tally {
  open: number;
  succeeded: number;
  failed: number;
  skipped: number;
}

export type EdgeResult = Exclude<keyof Tally, 'open'>;

/** Why the run is coming to a bad end. With `abort` nodes in flight are cut, without they come to their end. */
export interface Failure {
  readonly error: RunError;
  readonly abort: boolean;
  readonly failedNodeId?: string | undefined;
  readonly causeId?: string;
}

/**
 * A run as its log says it is. One holder owns it and moves it on with `apply`; nobody else changes it, and nothing in
 * it is not a function of the plan, the facts and the events.
 */
export interface Run {
  readonly plan: Plan;
  readonly facts: RunFacts;
  /** Sequence of the last event; -1 before the first. */
  sequence: number;
  ended?: 'completed' | 'failed' | 'cancelled';
  startedAt?: number;
  endedAt?: number;
  updatedAt: number;
  error?: RunError;
  pause?: { readonly at: number; readonly drainPolicy: DrainPolicy };
  /** A pause that waits for the nodes in flight. */
  draining?: { readonly at: number; readonly reason?: string | undefined };
  failure?: Failure;
  /** A fork that has left the history behind which it was given. */
  isAlone?: boolean;
  /** A node that would begin again more often than it may. */
  exhausted?: number;
  executions: number;
  readonly budget: BudgetState;
  /** What a supervisor has decided, turn by turn, and who it is. */
  readonly decisions: OrchestratorDecision[];
  orchestrator?: AgentRef;
  readonly nodes: NodeState[];
  readonly tallies: Tally[];
  /** Nodes that may start, by topological order. */
  readonly ready: ReadyList;
  /** Nodes that their trigger rule has ruled out and for which `node.skipped` is due. */
  readonly toSkip: Map<number, string>;
  /** Nodes in flight: running, retrying, waiting for a child, or suspended. */
  readonly active: Set<number>;
  /** Nodes that wait to be told something, in the order in which they began to. */
  readonly suspended: Set<number>;
  /** What each edge came to, by edge id; forgotten when its source begins again. */
  readonly edgeResults: Map<string, EdgeResult>;
  /** Node id to the interrupt that was answered there last. */
  readonly answered: Map<string, string>;
  /** Node id to outputs, as expressions see it. */
  readonly outputs: JsonObject;
  readonly variables: JsonObject;
  readonly channels: Map<string, unknown>;
  readonly pins: Map<string, number>;
  /** Edge conditions that failed to evaluate and have not been logged yet: edge id to message. */
  readonly warnings: Map<string, string>;
}

/** A run before its first event. */
export function emptyRun(plan: Plan, facts: RunFacts): Run {
  return {
    plan,
    facts,
    sequence: -1,
    updatedAt: facts.createdAt,
    executions: 0,
    budget: emptyBudget(),
    decisions: [],
    nodes: plan.nodes.map(() => ({ status: 'pending', attempt: 0, failures: 0, visit: 0, interrupts: 0 })),
    tallies: plan.nodes.map(({ incoming }) => ({ open: incoming.length, succeeded: 0, failed: 0, skipped: 0 })),
    ready: new ReadyList((index) => plan.nodes[index]!.order),
    toSkip: new Map(),
    active: new Set(),
    suspended: new Set(),
    edgeResults: new Map(),
    answered: new Map(),
    outputs: Object.create(null) as JsonObject,
    variables: initialVariables(plan, facts),
    channels: initialChannels(plan),
    pins: new Map(),
    warnings: new Map(),
  };
}

function initialVariables(plan: Plan, facts: RunFacts): JsonObject {
  const variables = Object.create(null) as JsonObject;
  for (const { name, defaultValue } of plan.definition.variables) {
    if (defaultValue !== undefined) variables[name] = structuredClone(defaultValue);
  }
  return Object.assign(variables, facts.inputs);
}

function initialChannels(plan: Plan): Map<string, unknown> {
  return new Map(
    Object.entries(plan.definition.channels ?? {}).map(([name, channel]) => [
      name,
      initialState(channel.reducer, channel),
    ]),
  );
}

export function isTerminal(run: Run): boolean {
  return run.ended !== undefined;
}

/** The status callers see. Derived, never stored by hand: the run's row repeats what this says. */
export function statusOf(run: Run): RunStatus {
  if (run.ended) return run.ended;
  if (run.sequence < 0) return 'pending';
  if (run.pause) return 'paused';
  return waitingStatus(run) ?? 'running';
}

const WAITING: Partial<Record<InterruptKind, RunStatus>> = {
  approval: 'waiting-approval',
  'low-confidence': 'waiting-approval',
  'conversation.exchange': 'waiting-approval',
  'external-event': 'waiting-external',
};

/** A run waits when nothing of it can go on without somebody; the first node that waits says for whom. */
function waitingStatus(run: Run): RunStatus | undefined {
  if (run.toSkip.size > 0 || run.failure || run.ready.size > 0) return undefined;
  for (const index of run.active) {
    const state = run.nodes[index]!;
    if (state.status !== 'suspended' && !waitingChild(state)) return undefined;
  }
  const [asked] = run.suspended;
  if (asked !== undefined) return WAITING[run.nodes[asked]!.interrupt!.kind] ?? 'waiting-input';
  const [waiting] = run.active;
  return waiting === undefined ? undefined : waitingChild(run.nodes[waiting]!)?.status;
}

/** The first child that waits for somebody, where all that are not over do. */
function waitingChild({ status, children = [] }: NodeState): ChildState | undefined {
  const live = status === 'waiting' ? children.filter((child) => !isOver(child)) : [];
  return live.every((child) => child.status.startsWith('waiting-')) ? live[0] : undefined;
}

export function isOver({ status }: ChildState): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** With a budget, runs below take turns: what is left for one depends on what the one before it took. */
export function isTurnTaken({ facts, budget, active, nodes }: Run): boolean {
  if (!facts.configurable.budget) return false;
  return [...active].some((index) => {
    const { status, children = [] } = nodes[index]!;
    return status === 'waiting' && children.some((child) => !isOver(child) && !budget.counted.has(child.runId));
  });
}

export function isDeclaredChannel(run: Run, name: string): boolean {
  return declaredChannel(run, name) !== undefined;
}

/** Variables with the state of undeclared channels among them, which is where readers look for it. */
export function visibleVariables(run: Run): JsonObject {
  const loose = [...run.channels].filter(([name]) => !isDeclaredChannel(run, name));
  if (loose.length === 0) return run.variables;
  const visible = Object.assign(Object.create(null) as JsonObject, run.variables);
  for (const [name] of loose) visible[name] = channelState(run, name);
  return visible;
}

/** The state of a channel, for whoever may keep it: the fold goes on changing its own. */
export function channelState(run: Run, name: string): unknown {
  const state = run.channels.get(name);
  return Array.isArray(state) ? [...state] : state;
}

export function declaredChannel(run: Run, name: string): ChannelDeclaration | undefined {
  return own(run.plan.definition.channels, name);
}

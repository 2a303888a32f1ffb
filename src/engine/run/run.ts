import type { OrchestratorDecision } from '../../protocol/ai/agents.ts';
import type { RunError } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { TraceContext } from '../../protocol/format/trace.ts';
import type { DrainPolicy, InterruptKind, Owner } from '../../protocol/running/events.ts';
import type { ForkMode } from '../../protocol/running/forks.ts';
import type { Configurable, RunStatus } from '../../protocol/running/runs.ts';
import type { AgentRef, WorkflowEdge } from '../../protocol/running/workflows.ts';
import { type Plan, withSensitiveInputs } from '../definition/plan.ts';
import type { KnownValues } from '../masking/known-values.ts';
import { knownAtStart } from '../masking/learning.ts';
import { type BudgetState, emptyBudget } from '../models/budget-state.ts';
import { Spending } from '../models/spending.ts';
import type { Verdict } from '../people/verdict.ts';
import type { NodeCauses, RunCauses } from './causes.ts';
import { initialState } from './channels.ts';
import { ReadyList } from './ready-list.ts';

/** What is fixed when a run is created. Stored on the run's row, next to the log, and never part of an event. */
export interface RunFacts {
  readonly runId: string;
  readonly workflowId: string;
  readonly owner: Owner;
  /** Principals and people who started the run or forked it; the owner alone if absent. */
  readonly initiators?: readonly string[] | undefined;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly parent?: { readonly runId: string; readonly nodeId: string } | undefined;
  readonly createdAt: number;
  /** Version of the engine that created the run. */
  readonly engineVersion: number;
  readonly limits: RunLimits;
  /** Names of inputs that hold sensitive values of the parent, whatever the definition says. */
  readonly sensitiveInputs?: readonly string[] | undefined;
  readonly fork?: Fork | undefined;
  /** The trace of the request that started the run, or of the parent's node. */
  readonly trace?: TraceContext | undefined;
}

/** The origin of a run that began as a copy of another run's history. */
export interface Fork {
  readonly sourceRunId: string;
  /** Events before this sequence are copies of the source's events. */
  readonly fromSeq: number;
  readonly mode: ForkMode;
  /** Sequence of the source's last event when the fork was made, excluding a cancellation. */
  readonly throughSeq: number;
  /** Seed of the source's backoff jitter. */
  readonly seed: string;
  /** Where approvals in the copied events do not cover what the run does, because something they were for has changed. */
  readonly reopenings?: readonly Reopening[] | undefined;
  /** Where in the copied events branches left their sources; see `branchPointsOf`. */
  readonly branchPoints?: readonly BranchPoint[] | undefined;
  /**
   * The preview that the run belongs to. Such a replay follows no script: nodes that ask models ask them again, with a
   * draft in place; everything else that came from outside is taken from the source.
   */
  readonly preview?: string | undefined;
}

/**
 * Whether a run takes the effects of its nodes from the record of its source, so that they were counted there. A preview
 * is a replay that really asks models.
 */
export function isFromRecord(fork: Fork | undefined): boolean {
  return fork?.mode === 'replay' && fork.preview === undefined;
}

/** Where and when a branch began to run on its own. */
export interface BranchPoint {
  /** Sequence of its first own event. */
  readonly before: number;
  readonly at: number;
}

/** Gates that are passed again, with everything after them. */
export interface Reopening {
  /** Sequence of the first event after the gates were reopened. */
  readonly before: number;
  readonly gates: readonly string[];
}

/** Limits that end a run when exceeded. */
export interface RunLimits {
  readonly maxNodeExecutions: number;
  /** The smallest of the limits set by workflow, caller and host. */
  readonly maxRunDurationMs: number;
}

/** Where a node is in its life cycle; `waiting` is for child runs, `suspended` for an answer. */
type NodeStatus =
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

/** The state of one node of a run. */
export interface NodeState {
  status: NodeStatus;
  /** Number of the attempt that is running or due, from 0. */
  attempt: number;
  /** The first attempt since the node was last reset: by it traces tell one execution of the node from the next. */
  firstAttempt?: number | undefined;
  /** Number of failed attempts that were retried. */
  failures: number;
  startedAt?: number | undefined;
  /** When the last interrupt of the attempt was answered. */
  resumedAt?: number | undefined;
  /** When the last child of the attempt ended. */
  childEndedAt?: number | undefined;
  /** A loop began anew before the node while it was at work: its result is of what was before, and it is made again. */
  isOutdated?: boolean | undefined;
  /** How long the last interrupt that was answered had been open. */
  waitedMs?: number | undefined;
  endedAt?: number | undefined;
  /** The attempt's inputs, resolved when it started. */
  inputs?: NodeInputs | undefined;
  outputs?: JsonObject | undefined;
  error?: RunError | undefined;
  /** Why the node was skipped or cancelled. */
  reason?: string | undefined;
  retryAt?: number | undefined;
  /** Number of channel writes and artifacts that this attempt has already recorded. */
  additions?: number | undefined;
  /** Number of log lines and pieces of text that this attempt has already recorded. */
  shown?: number | undefined;
  /** Child runs of this attempt, in order of creation. */
  children?: ChildState[] | undefined;
  /** Number of model calls in the log for this visit. */
  modelCalls?: number | undefined;
  /** Number of agent events in the log for this visit. */
  agentSteps?: number | undefined;
  /** Deltas of a reasoning that is not finished: the next attempt begins it anew. */
  openDeltas?: number | undefined;
  /** Tool calls without a result yet: call id to the id of the `agent.toolCalled` event. */
  toolCalls?: Map<string, string> | undefined;
  causes?: NodeCauses | undefined;
  /** How often a loopback edge has restarted the node. */
  visit: number;
  /** Number of interrupts raised in this run, so that the next one gets a new key. */
  interrupts: number;
  /** The open interrupt, if the node is suspended. */
  interrupt?: OpenInterrupt | undefined;
  /** The answer to the last interrupt; kept until the node settles or raises another. */
  answer?: { readonly value: unknown; readonly verdict: Verdict } | undefined;
  /** The answers to all interrupts of this visit, in order. */
  answers?: readonly unknown[] | undefined;
}

/** A child run, as last reported to its parent. */
export interface ChildState {
  readonly runId: string;
  status: RunStatus;
  /** Number of decisions of the supervisor when the child was started; absent without a supervisor. */
  readonly turn?: number;
  /** Number of the report on a worker's end among those of its node; absent until there is one. */
  report?: number;
  /** Whether the outputs of a worker were taken over. */
  isHarvested?: boolean;
}

/** An interrupt without an answer. */
export interface OpenInterrupt {
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly key: string;
  readonly requestedAt: number;
  data: JsonObject;
  resumeSchema?: JsonObject;
  expiresAt?: number;
  /** Votes so far by voter; a second vote of the same voter replaces the first. */
  readonly votes: Map<string, string>;
  /** When each voter voted. */
  votedAt?: Map<string, number>;
}

/** The resolved inputs of an attempt. */
export interface NodeInputs {
  /** All ports: the run's inputs or what the edges deliver, overridden by the ports that the node declares. */
  readonly all: JsonObject;
  /** Only the ports that the node declares. */
  readonly declared: JsonObject;
  /** Set if a port could not be resolved; the attempt then fails with it without running. */
  readonly problem?: RunError;
}

/** Number of incoming edges of a node by result; `open` ones have none yet. */
export interface Tally {
  open: number;
  succeeded: number;
  failed: number;
  skipped: number;
}

/** The result of an edge whose source has settled. */
export type EdgeResult = Exclude<keyof Tally, 'open'>;

/** Why the run is about to fail. With `abort`, nodes in flight are cancelled; otherwise they may finish. */
interface Failure {
  readonly error: RunError;
  readonly abort: boolean;
  readonly failedNodeId?: string | undefined;
  /** Id of the event that caused the failure. */
  readonly causeId?: string;
}

/**
 * The state of a run: a function of plan, facts and events, and nothing else. Its single owner advances it with
 * `apply`.
 */
export interface Run {
  readonly plan: Plan;
  readonly facts: RunFacts;
  /** Sequence of the last event; -1 before the first. */
  sequence: number;
  /** Length of all events as stored text, to enforce the limit on the log; counted by whoever reads or writes them. */
  logCharacters: number;
  /** Digest of all events as stored text, to tell damage; kept by whoever reads or writes them. */
  logDigest: string;
  ended?: 'completed' | 'failed' | 'cancelled';
  startedAt?: number;
  endedAt?: number;
  updatedAt: number;
  error?: RunError;
  /** Set while the run is paused. */
  pause?: { readonly at: number; readonly drainPolicy: DrainPolicy };
  /** A requested pause that waits for the nodes in flight. */
  draining?: { readonly at: number; readonly reason?: string | undefined };
  /** Set once the run is bound to fail, until `run.failed` is recorded. */
  failure?: Failure;
  /** Whether a fork has left its source's history. */
  isDetached?: boolean;
  /** When the fork, or a branch whose history it repeats, left its source: it may take so long from then on. */
  leftSourceAt?: number;
  /** Index of a node that exceeded the loopback limit. */
  exhausted?: number;
  /** Number of attempts started, to enforce `maxNodeExecutions`. */
  executions: number;
  readonly budget: BudgetState;
  /** What its model calls have used. */
  readonly spending: Spending;
  readonly causes: RunCauses;
  /** Decisions of the supervisor, in order. */
  readonly decisions: OrchestratorDecision[];
  /** The agent that made the first decision. */
  orchestrator?: AgentRef;
  readonly nodes: NodeState[];
  readonly tallies: Tally[];
  /** Nodes that may start, in topological order. */
  readonly ready: ReadyList;
  /** Nodes that their trigger rule excludes and whose `node.skipped` is due: index to reason. */
  readonly toSkip: Map<number, string>;
  /** Nodes in flight: running, retrying, waiting for a child run, or suspended. */
  readonly active: Set<number>;
  /** Nodes with an open interrupt, oldest first. */
  readonly suspended: Set<number>;
  /** Result of each edge by edge id; removed when its source starts again. */
  readonly edgeResults: Map<string, EdgeResult>;
  /** Node id to the id of the interrupt that was answered last. */
  readonly answered: Map<string, string>;
  /** Principal to the person that its key names, as far as the log knows. */
  readonly people: Map<string, string>;
  /** Principals who answered questions or changed what was to be approved. */
  readonly authors: Set<string>;
  /** Index of a gate to the time until which its approval counts. */
  readonly grants: Map<number, number>;
  /** Outputs by node id, as expressions see them. */
  readonly outputs: JsonObject;
  readonly variables: JsonObject;
  readonly channels: Map<string, unknown>;
  /** Sensitive values seen so far, which readers get nowhere; absent while there are none. */
  known?: KnownValues;
  /** Pinned versions by change id (`version.pinned`). */
  readonly pins: Map<string, number>;
  /** Edge conditions that failed to evaluate and are not logged yet, by the id of the edge. */
  readonly warnings: Map<string, { readonly edge: WorkflowEdge; readonly reason: string }>;
}

/**
 * The state of a node that has not started. What an attempt may set is there from the beginning, and is emptied instead of
 * deleted: V8 makes an object slow that loses a member.
 */
export function pendingNode(counts: Pick<NodeState, 'attempt' | 'visit' | 'interrupts'>): NodeState {
  return {
    status: 'pending',
    failures: 0,
    ...counts,
    firstAttempt: undefined,
    startedAt: undefined,
    resumedAt: undefined,
    childEndedAt: undefined,
    isOutdated: undefined,
    endedAt: undefined,
    inputs: undefined,
    outputs: undefined,
    retryAt: undefined,
    additions: undefined,
    shown: undefined,
    children: undefined,
    interrupt: undefined,
    answer: undefined,
    answers: undefined,
    error: undefined,
    causes: undefined,
  };
}

/** The state of a run before its first event. */
export function emptyRun(shared: Plan, facts: RunFacts): Run {
  const plan = withSensitiveInputs(shared, facts.sensitiveInputs ?? []);
  const variables = initialVariables(plan, facts);
  const channels = initialChannels(plan);
  const known = knownAtStart(plan, variables, channels);
  return {
    plan,
    facts,
    sequence: -1,
    logCharacters: 0,
    logDigest: '',
    updatedAt: facts.createdAt,
    executions: 0,
    budget: emptyBudget(),
    spending: new Spending(),
    causes: { children: new Map(), handoffs: new Map() },
    decisions: [],
    nodes: plan.nodes.map(() => pendingNode({ attempt: 0, visit: 0, interrupts: 0 })),
    tallies: plan.nodes.map(({ incoming }) => ({ open: incoming.length, succeeded: 0, failed: 0, skipped: 0 })),
    ready: new ReadyList((index) => plan.nodes[index]!.order),
    toSkip: new Map(),
    active: new Set(),
    suspended: new Set(),
    edgeResults: new Map(),
    answered: new Map(),
    people: new Map(),
    authors: new Set(),
    grants: new Map(),
    outputs: Object.create(null) as JsonObject,
    variables,
    channels,
    ...(known ? { known } : {}),
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

/** Whether the run has completed, failed or been cancelled; no event can follow. */
export function isTerminal(run: Run): boolean {
  return run.ended !== undefined;
}

/** The status that callers see. Always derived; the column on the run's row repeats it. */
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

/**
 * A run counts as waiting if nothing in it can continue without an answer; the node that has waited longest determines
 * the status.
 */
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

/** The first child that waits for an answer, provided that all unfinished children do. */
function waitingChild({ status, children = [] }: NodeState): ChildState | undefined {
  const live = status === 'waiting' ? children.filter((child) => !isOver(child)) : [];
  return live.every((child) => child.status.startsWith('waiting-')) ? live[0] : undefined;
}

/** Whether a child run has ended. */
export function isOver({ status }: ChildState): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/**
 * With a budget, child runs take turns, because what one may spend depends on what the previous one spent. True while
 * one is running.
 */
export function isChildSlotTaken({ facts, budget, active, nodes }: Run): boolean {
  if (!facts.configurable.budget) return false;
  return [...active].some((index) => {
    const { status, children = [] } = nodes[index]!;
    return status === 'waiting' && children.some((child) => !isOver(child) && !budget.counted.has(child.runId));
  });
}

import { inactivityOf } from '../engine/definition/activity.ts';
import type { PlannedNode } from '../engine/definition/plan.ts';
import { nodeSpan } from '../engine/inspection/span-names.ts';
import { maskRunOutputs } from '../engine/masking/mask.ts';
import { childBudget, type SpendingReport, spendingReportOf } from '../engine/models/budget.ts';
import { causeOfChild } from '../engine/run/causation.ts';
import { finalOutputs } from '../engine/run/next.ts';
import { type ChildState, isOver, type Run } from '../engine/run/run.ts';
import { visibleVariables } from '../engine/run/visible-variables.ts';
import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { TraceContext } from '../protocol/format/trace.ts';
import type { EventPayload, NewEvent } from '../protocol/running/events.ts';
import { childRunsAmong, incrementDescendants, type RunRef, type RunRow, readDescendantCount } from '../store/log.ts';
import { sha256Hex, spanIdOf } from '../system/digest.ts';
import { and, type Change, changeOf } from './change.ts';
import type { ChildRequest, ChildResult } from './child-request.ts';
import { type CreatedRun, createRun } from './creation.ts';
import { NodeFailure } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type Placement, type StartedRun, startRun } from './start-run.ts';
import { traceOf } from './tracing.ts';

type HandoffPhase = EventPayload<'core.workflowChain.event'>['phase'];

/** Levels of child runs below a run that nobody else started. */
const CHILD_DEPTH_MAX = 32;
/** Descendants of one root run, at any depth: the depth limit alone would allow exponentially many. */
const RUNS_BELOW_MAX = 10_000;

/** A child run that is not committed yet: it is created in the unit that appends `events` to the parent's log. */
interface PreparedChild {
  readonly events: readonly NewEvent[];
  readonly created: CreatedRun;
  readonly change: Change<StartedRun>;
}

/** The children that a node asked for. */
export interface PreparedChildren {
  /** How many children the node had when it asked; if it has more by now, the request was answered already. */
  readonly childrenBefore: number;
  readonly children: readonly PreparedChild[];
  /** Why a worker could not be started. */
  readonly refused?: RefusedHandoff;
}

/** A worker of a supervisor could not be started: its events, and the error of the node. */
export class RefusedHandoff extends NodeFailure {
  readonly events: readonly NewEvent[];

  constructor(error: RunError, events: readonly NewEvent[]) {
    super(error);
    this.events = events;
  }
}

/** Prepares all children that a node asks for; throws NodeFailure if one of them is not allowed. */
export async function prepareChildren(
  runtime: Runtime,
  parent: HeldRun,
  planned: PlannedNode,
  requests: readonly ChildRequest[],
  placement: Placement,
): Promise<PreparedChild[]> {
  const root = rootOf(parent);
  const [tree] = await runtime.store.read<{ below: number }>(readDescendantCount(root));
  if ((tree?.below ?? 0) + requests.length > RUNS_BELOW_MAX) {
    throw failure('recursion_limit_exceeded', `A run leads to at most ${RUNS_BELOW_MAX} others.`);
  }
  const prepare = async (request: ChildRequest): Promise<PreparedChild> => {
    try {
      return await prepareChild(runtime, parent, planned, request, placement);
    } catch (error) {
      if (!(error instanceof NodeFailure) || !request.isHandoff) throw error;
      const phase = transitionsOf(parent.run, planned, request.workflowId);
      throw new RefusedHandoff(error.error, [
        phase('dispatch.began'),
        phase('dispatch.failed', { error: error.error }),
      ]);
    }
  };
  return Promise.all(requests.map(prepare));
}

/** Makes the events of a handoff to a worker. */
function transitionsOf({ facts }: Run, { node }: PlannedNode, workerId: string) {
  return (phase: HandoffPhase, more: { childRunId?: string; error?: RunError } = {}): NewEvent => ({
    type: 'core.workflowChain.event',
    nodeId: node.id,
    payload: { phase, workerId, parentRunId: facts.runId, ...more },
  });
}

/** The run at the top of the tree: descendants are counted there. */
function rootOf({ identity: { subject, rootRunId }, run }: HeldRun): RunRef {
  return { tenant: subject.tenant, runId: rootRunId ?? run.facts.runId };
}

async function prepareChild(
  runtime: Runtime,
  parent: HeldRun,
  planned: PlannedNode,
  { workflowId, variables, isHandoff }: ChildRequest,
  placement: Placement,
): Promise<PreparedChild> {
  const { subject, depth } = parent.identity;
  const { node } = planned;
  const root = rootOf(parent);
  const budget = childBudget(parent.run);
  const workflow = await runtime.plans.current(subject, workflowId);
  if (!workflow) throw failure('unknown_child_workflow', 'The child workflow does not exist.');
  const inactivity = inactivityOf(workflow.plan.definition);
  if (inactivity)
    throw failure('unknown_child_workflow', `The child workflow is ${inactivity}, so no run can be started.`);
  if (depth >= CHILD_DEPTH_MAX) {
    throw failure('recursion_limit_exceeded', `Runs nest at most ${CHILD_DEPTH_MAX} deep.`);
  }
  const causationId = causeOfChild(parent.run, node.id);
  const child = createRun(runtime, {
    subject,
    initiators: parent.run.facts.initiators,
    workflow,
    inputs: variables,
    sensitiveInputs: sensitiveAmong(parent.run, variables),
    configurable: budget ? { budget } : {},
    parent: { runId: parent.run.facts.runId, nodeId: node.id },
    causationId,
    depth: depth + 1,
    rootRunId: root.runId,
    trace: traceOfChild(runtime, parent, planned),
  });
  const childRunId = child.held.run.facts.runId;
  const payload = { childRunId, childWorkflowId: workflowId };
  const dispatched: NewEvent = { type: 'node.dispatched', nodeId: node.id, payload };
  const phase = transitionsOf(parent.run, planned, workflowId);
  return {
    events: isHandoff
      ? [phase('dispatch.began'), dispatched, phase('dispatch.succeeded', { childRunId })]
      : [dispatched],
    created: child,
    change: and(startRun(runtime, child, placement), changeOf(undefined, [incrementDescendants(root)])),
  };
}

/** The names of a child's inputs that hold sensitive values of its parent. */
function sensitiveAmong({ known }: Run, variables: JsonObject): string[] | undefined {
  const names = known ? Object.keys(variables).filter((name) => known.holds(variables[name])) : [];
  return names.length > 0 ? names : undefined;
}

/** The final outputs as readers see them. */
function shownOutputs(run: Run): JsonObject {
  const masked = maskRunOutputs(run.plan, finalOutputs(run), sha256Hex);
  return run.known ? run.known.mask(masked) : masked;
}

/** The child belongs to the parent's trace, under the node that started it. */
function traceOfChild(runtime: Runtime, { run }: HeldRun, { node, index }: PlannedNode): TraceContext | undefined {
  const trace = traceOf(runtime, run.facts);
  const { attempt, firstAttempt = attempt } = run.nodes[index]!;
  return trace && { ...trace, spanId: spanIdOf(nodeSpan(run.facts.runId, node.id, firstAttempt)) };
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

/** What has changed about the children of a run since their state was last recorded. */
interface ChildUpdates {
  /** Results of children that have ended, by the id of the node that waits for them. */
  readonly ended: ReadonlyMap<string, ChildResult>;
  /** Events about new statuses and costs: a parent waits for a person when its child does. */
  readonly changed: readonly NewEvent[];
}

/** Reads the children that a run waits for, and compares them with what the run's log says about them. */
export async function readChildUpdates(runtime: Runtime, { identity, run }: HeldRun): Promise<ChildUpdates> {
  const { tenant } = identity.subject;
  const awaited = awaitedChildren(run);
  const ended = new Map<string, ChildResult>();
  const changed: NewEvent[] = [];
  if (awaited.size === 0) return { ended, changed };
  const rows = await runtime.store.read<RunRow>(
    childRunsAmong({ tenant, runId: run.facts.runId }, [...awaited.keys()]),
  );
  for (const row of rows) {
    const { nodeId, typeId, child } = awaited.get(row.run_id)!;
    const isOnlyChild = !runtime.catalog.get(typeId)?.fansOut;
    const isResult = row.ended_at !== null && isOnlyChild;
    if (isResult) ended.set(nodeId, await resultOf(runtime, row));
    // The end of an only child is recorded with its node's outcome: recorded earlier, a crash would lose the result.
    const status = isResult ? child.status : row.status;
    const bill = await billFor(runtime, run, row);
    if (status === child.status && !bill) continue;
    const payload = { nodeId, childRunId: row.run_id, status, ...bill };
    changed.push({ type: 'capstan.child.changed', nodeId, payload });
  }
  return { ended, changed };
}

/** The cost of a child that has ended, if its parent has a budget and has not recorded the cost yet. */
async function billFor({ reader }: Runtime, { facts, budget }: Run, row: RunRow): Promise<SpendingReport | undefined> {
  const isDue = row.ended_at !== null && facts.configurable.budget && !budget.counted.has(row.run_id);
  return isDue ? reader.view({ tenant: row.tenant }, row.run_id, ({ run }) => spendingReportOf(run)) : undefined;
}

interface Awaited {
  readonly nodeId: string;
  readonly typeId: string;
  readonly child: ChildState;
}

/** Children that have not ended by the parent's log, by run id. */
function awaitedChildren(run: Run): Map<string, Awaited> {
  const waiting = [...run.active].filter((index) => run.nodes[index]!.status === 'waiting');
  const children = waiting.flatMap((index) => {
    const { id: nodeId, typeId } = run.plan.nodes[index]!.node;
    const live = (run.nodes[index]!.children ?? []).filter((child) => !isOver(child));
    return live.map((child): [string, Awaited] => [child.runId, { nodeId, typeId, child }]);
  });
  return new Map(children);
}

/** The result of a child that has ended; a child that retention has deleted counts as failed. */
export async function childResult(runtime: Runtime, { tenant, runId }: RunRef): Promise<ChildResult> {
  const row = await runtime.reader.row({ tenant }, runId);
  if (row) return resultOf(runtime, row);
  const error = { code: 'child_missing', message: 'The child run is not kept any more.' };
  return { runId, status: 'failed', variables: {}, error };
}

/** The error of a run. Its message goes where outputs go as `shown`: to models, and into logs of others. */
function shownError({ error, known }: Run): RunError | undefined {
  return error && known ? { ...error, message: known.mask(error.message) } : error;
}

async function resultOf({ reader }: Runtime, row: RunRow): Promise<ChildResult> {
  const held = await reader.acquire(row);
  const { run } = held;
  const result = {
    runId: row.run_id,
    status: run.ended!,
    variables: Object.assign(Object.create(null), visibleVariables(run)),
    outputs: finalOutputs(run),
    shown: shownOutputs(run),
    known: run.known,
    error: shownError(run),
  };
  reader.release(held);
  return result;
}

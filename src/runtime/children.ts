import type { PlannedNode } from '../engine/definition/plan.ts';
import { maskRunOutputs } from '../engine/masking/mask.ts';
import { type Bill, billOf, budgetBelow } from '../engine/models/budget.ts';
import { finalOutputs } from '../engine/run/next.ts';
import { type ChildState, isOver, type Run, visibleVariables } from '../engine/run/run.ts';
import type { RunError } from '../protocol/errors.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import { childRunsAmong, countRunBelow, type RunRef, type RunRow, runsBelow } from '../store/log.ts';
import { sha256Hex } from '../system/digest.ts';
import { and, type Change, changeOf } from './change.ts';
import { type CreatedRun, createRun } from './creation.ts';
import { type ChildRequest, type ChildResult, NodeFailure } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type Placement, type StartedRun, startRun } from './start-run.ts';

const CHILD_DEPTH_MAX = 32;
/** Runs that one may lead to, at whatever depth: a few that each start a few of themselves are many soon. */
const RUNS_BELOW_MAX = 10_000;

/** A child run that comes to be in the transaction that says so in its parent's log: there is one, or none. */
export interface PreparedChild {
  readonly event: NewEvent;
  readonly created: CreatedRun;
  readonly change: Change<StartedRun>;
}

/** Children that a node asked for when it had so many already. */
export interface PreparedChildren {
  readonly after: number;
  readonly children: readonly PreparedChild[];
}

/** All the children that a node asks for at once, or none of them. */
export async function prepareChildren(
  runtime: Runtime,
  parent: HeldRun,
  planned: PlannedNode,
  requests: readonly ChildRequest[],
  placement: Placement,
): Promise<PreparedChild[]> {
  const root = rootOf(parent);
  const [tree] = await runtime.store.read<{ below: number }>(runsBelow(root));
  if ((tree?.below ?? 0) + requests.length > RUNS_BELOW_MAX) {
    throw failure('recursion_limit_exceeded', `A run leads to at most ${RUNS_BELOW_MAX} others.`);
  }
  return Promise.all(requests.map((request) => prepareChild(runtime, parent, planned, request, placement)));
}

/** The run that nobody else started. */
function rootOf({ identity: { subject, rootRunId }, run }: HeldRun): RunRef {
  return { tenant: subject.tenant, runId: rootRunId ?? run.facts.runId };
}

async function prepareChild(
  runtime: Runtime,
  parent: HeldRun,
  { node }: PlannedNode,
  { workflowId, variables }: ChildRequest,
  placement: Placement,
): Promise<PreparedChild> {
  const { subject, depth } = parent.identity;
  const root = rootOf(parent);
  const budget = budgetBelow(parent.run);
  const workflow = await runtime.plans.current(subject, workflowId);
  if (!workflow) throw failure('unknown_child_workflow', 'The child workflow does not exist.');
  if (depth >= CHILD_DEPTH_MAX) {
    throw failure('recursion_limit_exceeded', `Runs nest at most ${CHILD_DEPTH_MAX} deep.`);
  }
  const child = createRun(runtime, {
    subject,
    workflow,
    inputs: variables,
    configurable: budget ? { budget } : {},
    parent: { runId: parent.run.facts.runId, nodeId: node.id },
    depth: depth + 1,
    rootRunId: root.runId,
  });
  const childRunId = child.held.run.facts.runId;
  return {
    event: { type: 'node.dispatched', nodeId: node.id, payload: { childRunId, childWorkflowId: workflowId } },
    created: child,
    change: and(startRun(runtime, child, placement), changeOf(undefined, [countRunBelow(root)])),
  };
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

export interface Harvest {
  /** Children that have ended, by the node that waits for each. */
  readonly ended: ReadonlyMap<string, ChildResult>;
  /** What to record of those that go on: a parent waits for a person when its child does. */
  readonly changed: readonly NewEvent[];
}

export async function harvestChildren(runtime: Runtime, { identity, run }: HeldRun): Promise<Harvest> {
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
    const isAlone = !runtime.catalog.get(typeId)?.fansOut;
    const isEnd = row.ended_at !== null && isAlone;
    if (isEnd) ended.set(nodeId, await resultOf(runtime, row));
    // A node that is alone with its child is told of its end, and needs to be told again should that be lost.
    const status = isEnd ? child.status : row.status;
    const bill = await billFor(runtime, run, row);
    if (status === child.status && !bill) continue;
    const payload = { nodeId, childRunId: row.run_id, status, ...bill };
    changed.push({ type: 'capstan.child.changed', nodeId, payload });
  }
  return { ended, changed };
}

/** What a child has cost that is over, where its parent has a budget and has not paid yet. */
async function billFor({ reader }: Runtime, { facts, budget }: Run, row: RunRow): Promise<Bill | undefined> {
  const isDue = row.ended_at !== null && facts.configurable.budget && !budget.counted.has(row.run_id);
  return isDue ? reader.view({ tenant: row.tenant }, row.run_id, ({ run }) => billOf(run)) : undefined;
}

interface Awaited {
  readonly nodeId: string;
  readonly typeId: string;
  readonly child: ChildState;
}

/** Children that are not known to be over, by their run ids. */
function awaitedChildren(run: Run): Map<string, Awaited> {
  const waiting = [...run.active].filter((index) => run.nodes[index]!.status === 'waiting');
  const children = waiting.flatMap((index) => {
    const { id: nodeId, typeId } = run.plan.nodes[index]!.node;
    const live = (run.nodes[index]!.children ?? []).filter((child) => !isOver(child));
    return live.map((child): [string, Awaited] => [child.runId, { nodeId, typeId, child }]);
  });
  return new Map(children);
}

/** How a child that is over ended. */
export async function childResult(runtime: Runtime, { tenant, runId }: RunRef): Promise<ChildResult> {
  const row = await runtime.reader.row({ tenant }, runId);
  if (row) return resultOf(runtime, row);
  const error = { code: 'child_missing', message: 'The child run is not kept any more.' };
  return { runId, status: 'failed', variables: {}, error };
}

async function resultOf({ reader }: Runtime, row: RunRow): Promise<ChildResult> {
  const held = await reader.take(row);
  const { run } = held;
  const result = {
    runId: row.run_id,
    status: run.ended!,
    variables: Object.assign(Object.create(null), visibleVariables(run)),
    outputs: finalOutputs(run),
    shown: maskRunOutputs(run.plan, finalOutputs(run), sha256Hex),
    error: run.error as RunError | undefined,
  };
  reader.give(held);
  return result;
}

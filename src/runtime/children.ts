import type { PlannedNode } from '../engine/plan.ts';
import { visibleVariables } from '../engine/run.ts';
import type { RunError } from '../protocol/errors.ts';
import type { NewEvent } from '../protocol/events.ts';
import { childRuns, type RunRow } from '../store/log.ts';
import { addWork, FIRST_EPOCH, type Lease } from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import { creationWrites } from './append.ts';
import { type CreatedRun, createRun } from './creation.ts';
import { type ChildRequest, type ChildResult, NodeFailure } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';

const CHILD_DEPTH_MAX = 32;

/** A child run that comes to be in the transaction that says so in its parent's log: there is one, or none. */
export interface PreparedChild {
  readonly event: NewEvent;
  readonly writes: Unit;
  readonly created: CreatedRun;
  readonly lease: Lease;
}

export async function prepareChild(
  runtime: Runtime,
  parent: HeldRun,
  { node }: PlannedNode,
  { workflowId, variables }: ChildRequest,
  owner: string,
): Promise<PreparedChild> {
  const { subject, depth } = parent.identity;
  const workflow = await runtime.plans.current(subject, workflowId);
  if (!workflow) throw failure('unknown_child_workflow', 'The child workflow does not exist.');
  if (depth >= CHILD_DEPTH_MAX) {
    throw failure('recursion_limit_exceeded', `Runs nest at most ${CHILD_DEPTH_MAX} deep.`);
  }
  const child = createRun(runtime, {
    subject,
    workflow,
    inputs: variables,
    configurable: {},
    parent: { runId: parent.run.facts.runId, nodeId: node.id },
    depth: depth + 1,
  });
  const childRunId = child.held.run.facts.runId;
  return {
    event: { type: 'node.dispatched', nodeId: node.id, payload: { childRunId, childWorkflowId: workflowId } },
    writes: [
      ...creationWrites(child, runtime.reactions),
      addWork({ workId: childRunId, kind: 'run', tenant: subject.tenant, dueAt: null, owner }),
    ],
    created: child,
    lease: { workId: childRunId, owner, epoch: FIRST_EPOCH },
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
  const rows = await runtime.store.read<RunRow>(childRuns({ tenant, runId: run.facts.runId }));
  const ended = new Map<string, ChildResult>();
  const changed: NewEvent[] = [];
  for (const row of rows) {
    const nodeId = row.parent_node_id ?? '';
    const index = run.plan.node(nodeId)?.index;
    const state = index === undefined ? undefined : run.nodes[index];
    if (state?.status !== 'waiting' || state.childRunId !== row.run_id) continue;
    if (row.ended_at !== null) ended.set(nodeId, await resultOf(runtime, row));
    else if (row.status !== (state.childStatus ?? 'running')) {
      const payload = { nodeId, childRunId: row.run_id, status: row.status };
      changed.push({ type: 'capstan.child.changed', nodeId, payload });
    }
  }
  return { ended, changed };
}

async function resultOf({ reader }: Runtime, row: RunRow): Promise<ChildResult> {
  const held = await reader.take(row);
  const { run } = held;
  const result = {
    runId: row.run_id,
    status: run.ended!,
    variables: Object.assign(Object.create(null), visibleVariables(run)),
    error: run.error as RunError | undefined,
  };
  reader.give(held);
  return result;
}

import type { Plan } from '../../engine/definition/plan.ts';
import { isApprovalKind } from '../../engine/people/verdict.ts';
import type { Reopening } from '../../engine/run/run.ts';
import { canonicalJson, type JsonObject } from '../../protocol/format/json.ts';
import type { Configurable } from '../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { childRuns, type ListedRun, type RunRow, type StoredEvent } from '../../store/log.ts';
import { sha256Hex } from '../../system/digest.ts';
import { type NewRun, storedGivens } from '../creation.ts';
import { decodeEvent } from '../recording.ts';
import { factsOf } from '../run-row.ts';
import type { Runtime } from '../runtime.ts';

/**
 * What an approval is for: the definition, the inputs and the options of its run. Variables follow from them and from
 * the events before the gate, which a fork has in common with its source.
 */
interface ApprovalBasis {
  readonly definition: WorkflowDefinition;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
}

type History = (length: number) => AsyncIterable<StoredEvent>;

/**
 * Where the approvals that a fork copies are not for it. A replay repeats its source with every reopening of it. A branch
 * that changes what was approved asks again at its first own event, and so does one that begins before its source did.
 */
export async function reopeningsOf(
  runtime: Runtime,
  source: RunRow,
  newRun: NewRun,
  history: History,
): Promise<readonly Reopening[]> {
  const facts = factsOf(source);
  const inherited = facts.fork?.reopenings ?? [];
  const { fromSeq, mode } = newRun.fork!;
  if (mode === 'replay' || fromSeq === 0) return mode === 'replay' ? inherited : [];
  const { plan } = newRun.workflow;
  const { definition } = await runtime.plans.pinned(source.workflow_owner, source.workflow_id, source.workflow_version);
  const approved = digestOf({ definition, inputs: facts.inputs, configurable: facts.configurable });
  const isChanged = digestOf({ definition: plan.definition, ...storedGivens(newRun) }) !== approved;
  const kept = inherited.filter(({ before }) => before <= fromSeq);
  if (!isChanged && kept.length === inherited.length) return kept;
  const gates = await gatesOf(runtime, source, plan, history(fromSeq));
  return gates.length === 0 ? kept : [...kept, { before: fromSeq, gates }];
}

function digestOf({ definition, inputs, configurable }: ApprovalBasis): string {
  return sha256Hex(canonicalJson({ definition, inputs, configurable }));
}

/** Nodes that ask for approval by their type, that asked for it in the history, or whose child runs did. */
async function gatesOf(
  runtime: Runtime,
  { tenant }: RunRow,
  plan: Plan,
  history: AsyncIterable<StoredEvent>,
): Promise<string[]> {
  const { catalog } = runtime;
  const gates = new Set(plan.nodes.filter(({ node }) => catalog.asksApproval(node)).map(({ node }) => node.id));
  for await (const stored of history) {
    const { type, nodeId, payload } = decodeEvent(stored);
    if (nodeId === undefined || gates.has(nodeId)) continue;
    const isGate =
      (type === 'interrupt.requested' && isApprovalKind(payload.kind)) ||
      (type === 'node.dispatched' && (await hasGates(runtime, tenant, payload.childRunId)));
    if (isGate) gates.add(nodeId);
  }
  return [...gates];
}

/** Whether a run or one of its descendants has gates. Of a run that has been deleted nobody knows, so it counts. */
async function hasGates(runtime: Runtime, tenant: string, runId: string): Promise<boolean> {
  const row = await runtime.reader.row({ tenant }, runId);
  if (!row) return true;
  const { nodes } = await runtime.plans.pinned(row.workflow_owner, row.workflow_id, row.workflow_version);
  if (nodes.some(({ node }) => runtime.catalog.asksApproval(node))) return true;
  for (const { run_id } of await runtime.store.read<ListedRun>(childRuns({ tenant, runId }))) {
    if (await hasGates(runtime, tenant, run_id)) return true;
  }
  return false;
}

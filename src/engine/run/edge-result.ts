import type { WorkflowEdge } from '../../protocol/running/workflows.ts';
import type { PlannedEdge } from '../definition/plan.ts';
import { ExpressionError } from '../expressions/expression-error.ts';
import { isMeantFor, type Verdict } from '../people/verdict.ts';
import { scopeOf } from './inputs.ts';
import type { EdgeResult, Run } from './run.ts';

/** What a settled node means for one of its outgoing edges. A gate that was not granted has rules of its own. */
export function edgeResult(run: Run, planned: PlannedEdge, verdict: Verdict): EdgeResult {
  return verdict === 'granted' ? ordinaryResult(run, planned) : resultOfNo(run, planned, verdict);
}

/** An edge whose condition is false counts like an edge from a skipped node. */
function ordinaryResult(run: Run, { edge, source, condition }: PlannedEdge): EdgeResult {
  const { status, outputs } = run.nodes[source]!;
  if (status === 'failed') return 'failed';
  // A skipped source has no output, and absent is falsy, so `falsy` is the one condition it can meet.
  if (status === 'skipped') return edge.condition?.type === 'falsy' ? 'succeeded' : 'skipped';
  if (!condition) return 'succeeded';
  const holds = orWarn(run, edge, () => condition({ ...scopeOf(run), output: outputs ?? {} }));
  return holds ? 'succeeded' : 'skipped';
}

/**
 * An approval that was not granted fails closed: every edge that is not meant for this outcome counts as failed, so that
 * no target starts because of its other edges. A target that waits for a failure gets one from every refusal, and from a
 * wish to refine if the edge is meant for that.
 */
function resultOfNo(run: Run, planned: PlannedEdge, verdict: Verdict): EdgeResult {
  const catches = run.plan.nodes[planned.target]!.rule === 'any_failed';
  if (catches && verdict === 'refused') return 'failed';
  const { outputs = {} } = run.nodes[planned.source]!;
  const isMeant = orWarn(run, planned.edge, () => isMeantFor(planned, scopeOf(run), outputs));
  if (catches) return isMeant ? 'failed' : 'skipped';
  return isMeant ? 'succeeded' : 'failed';
}

/** Evaluates a condition; an error counts as false and is logged. */
function orWarn(run: Run, edge: WorkflowEdge, holds: () => boolean): boolean {
  try {
    return holds();
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    run.warnings.set(edge.id, { edge, reason: error.message });
    return false;
  }
}

import type { WorkflowEdge } from '../../protocol/running/workflows.ts';
import type { PlannedEdge } from '../definition/plan.ts';
import { Allowance } from '../expressions/allowance.ts';
import { ExpressionError } from '../expressions/expression-error.ts';
import { isMeantFor, type Verdict } from '../people/verdict.ts';
import { scopeOf } from './inputs.ts';
import type { EdgeResult, Run } from './run.ts';

/**
 * Tells what a settled node means for its outgoing edges, one after the other. A gate that was not granted has rules of
 * its own.
 */
export function edgeResults(run: Run, verdict: Verdict): (planned: PlannedEdge) => EdgeResult {
  const allowance = new Allowance();
  return (planned) =>
    verdict === 'granted' ? ordinaryResult(run, planned, allowance) : resultOfNo(run, planned, verdict, allowance);
}

/** An edge whose condition is false counts like an edge from a skipped node. */
function ordinaryResult(run: Run, { edge, source, condition }: PlannedEdge, allowance: Allowance): EdgeResult {
  const { status, outputs } = run.nodes[source]!;
  if (status === 'failed') return 'failed';
  // A skipped source has no output, and absent is falsy, so `falsy` is the one condition it can meet.
  if (status === 'skipped') return edge.condition?.type === 'falsy' ? 'succeeded' : 'skipped';
  if (!condition) return 'succeeded';
  const holds = orWarn(run, edge, () => condition({ ...scopeOf(run), output: outputs ?? {} }, allowance));
  return holds ? 'succeeded' : 'skipped';
}

/**
 * An approval that was not granted fails closed: every edge that is not meant for this outcome counts as failed, so that
 * no target starts because of its other edges. A target that waits for a failure gets one from every refusal, and from a
 * wish to refine if the edge is meant for that.
 */
function resultOfNo(run: Run, planned: PlannedEdge, verdict: Verdict, allowance: Allowance): EdgeResult {
  const catches = run.plan.nodes[planned.target]!.rule === 'any_failed';
  if (catches && verdict === 'refused') return 'failed';
  const { outputs = {} } = run.nodes[planned.source]!;
  const isMeant = orWarn(run, planned.edge, () => isMeantFor(planned, scopeOf(run), outputs, allowance));
  if (catches) return isMeant ? 'failed' : 'skipped';
  return isMeant ? 'succeeded' : 'failed';
}

/** Evaluates a condition. An error counts as false and is logged: no condition may keep a log from being folded. */
function orWarn(run: Run, edge: WorkflowEdge, holds: () => boolean): boolean {
  try {
    return holds();
  } catch (error) {
    const reason = error instanceof ExpressionError ? error.message : 'the condition could not be evaluated';
    run.warnings.set(edge.id, { edge, reason });
    return false;
  }
}

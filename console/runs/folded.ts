import type { RunEvent as ClientEvent } from '../../src/client/index.ts';
import { fold, makePlan, type Run, type RunFacts } from '../../src/engine/index.ts';
import type { RunEvent } from '../../src/protocol/running/events.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';

/**
 * Folds the events of a run with the engine, by the definition that the run is pinned to; undefined if they cannot be
 * folded here. What the log of the wire masks is masked in the state, too.
 */
export function foldedTo(
  run: RunSnapshot,
  events: readonly ClientEvent[],
  definition: WorkflowDefinition,
): Run | undefined {
  const facts: RunFacts = {
    runId: run.runId,
    workflowId: run.workflowId,
    owner: run.owner ?? { tenant: 'unknown' },
    inputs: run.inputs ?? {},
    configurable: run.configurable ?? {},
    createdAt: Date.parse(run.createdAt ?? ''),
    engineVersion: Number(run.engineVersion ?? 1),
    limits: { maxNodeExecutions: Number.MAX_SAFE_INTEGER, maxRunDurationMs: Number.MAX_SAFE_INTEGER },
    ...(run.forkedFrom && { fork: forkOf(run.forkedFrom) }),
  };
  try {
    return fold(makePlan(definition, run.workflowVersion ?? 1), facts, events as Iterable<RunEvent>);
  } catch {
    return undefined;
  }
}

/** What is known here of a fork: not when it left its source, nor which of its gates were opened again. */
function forkOf({ runId, fromSeq, mode }: NonNullable<RunSnapshot['forkedFrom']>): NonNullable<RunFacts['fork']> {
  return { sourceRunId: runId, fromSeq, mode, throughSeq: Number.MAX_SAFE_INTEGER, seed: runId };
}

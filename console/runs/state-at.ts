import type { RunEvent as ClientEvent } from '../../src/client/index.ts';
import { fold, makePlan, type RunFacts, snapshotOf } from '../../src/engine/index.ts';
import type { RunEvent } from '../../src/protocol/running/events.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { client } from '../api/client.ts';

/** The values of a run at one moment. */
export type StateAtMoment = Pick<RunSnapshot, 'inputs' | 'variables' | 'channels'>;

/**
 * Folds the events with the engine, by the definition that the run is pinned to. A fork needs facts that only the host
 * has, so the host is asked for its state.
 */
export async function stateAt(
  run: RunSnapshot,
  events: readonly ClientEvent[],
  definition: WorkflowDefinition | undefined,
): Promise<StateAtMoment> {
  const sequence = events.at(-1)?.sequence ?? 0;
  const folded = definition && !run.forkedFrom ? foldHere(run, events, definition) : undefined;
  return folded ?? client.getRunState(run.runId, { sequence });
}

function foldHere(
  run: RunSnapshot,
  events: readonly ClientEvent[],
  definition: WorkflowDefinition,
): StateAtMoment | undefined {
  const facts: RunFacts = {
    runId: run.runId,
    workflowId: run.workflowId,
    owner: run.owner ?? { tenant: 'unknown' },
    inputs: run.inputs ?? {},
    configurable: run.configurable ?? {},
    createdAt: Date.parse(run.createdAt ?? ''),
    engineVersion: Number(run.engineVersion ?? 1),
    limits: { maxNodeExecutions: Number.MAX_SAFE_INTEGER, maxRunDurationMs: Number.MAX_SAFE_INTEGER },
  };
  try {
    const plan = makePlan(definition, run.workflowVersion ?? 1);
    // The log of the wire has the same events; what it masks is masked here too.
    return snapshotOf(fold(plan, facts, events as Iterable<RunEvent>), (text) => text);
  } catch {
    return undefined;
  }
}

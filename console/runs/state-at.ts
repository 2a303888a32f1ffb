import type { RunEvent as ClientEvent } from '../../src/client/index.ts';
import { snapshotOf } from '../../src/engine/index.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { client } from '../api/client.ts';
import { foldedTo } from './folded.ts';

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
  const folded = definition && !run.forkedFrom ? foldedTo(run, events, definition) : undefined;
  return folded ? snapshotOf(folded, (text) => text) : client.getRunState(run.runId, { sequence });
}

import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import { applyStored } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { logPages } from '../../log-pages.ts';
import type { Caller } from '../../request.ts';

/** Earlier states of runs, folded from their event logs. */
export class TimeTravelService {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The run as it was after the event with this sequence. */
  async stateAfter(caller: Caller, runId: string, sequence: number): Promise<RunSnapshot | Refusal> {
    const { reader } = this.#runtime;
    const row = await reader.row(caller.subject, runId);
    if (!row) return NOT_FOUND;
    if (sequence > row.sequence) return refuseFutureState(row.sequence);
    const { run } = await reader.load(row, -1);
    for await (const page of logPages(this.#runtime, { ...row, sequence })) {
      for (const event of page) applyStored(run, event);
    }
    return snapshotOf(run, sha256Hex);
  }
}

function refuseFutureState(lastSequence: number): Refusal {
  const message = `The last event of the run has sequence ${lastSequence}.`;
  return { ...refuse('validation_error', message, { field: 'sequence', lastSequence }), status: 422 };
}

import { finalOutputs } from '../../../engine/run/final-outputs.ts';
import type { Run } from '../../../engine/run/run.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import type { CallResult } from '../../../protocol/running/calls.ts';
import { sha256Hex } from '../../../system/digest.ts';

/** What came of a run, or how it stands. */
export type RunResult = Pick<CallResult, 'status' | 'outputs' | 'error'>;

/** The result of a run for the caller that started it: status, outputs of its last nodes, and the error. */
export function resultOfRun(run: Run): RunResult {
  const snapshot = snapshotOf(run, sha256Hex);
  const { status, error } = snapshot;
  return {
    status,
    outputs: finalOutputs(snapshot, run.plan.definition) as RunResult['outputs'],
    ...(error ? { error: { code: error.code, message: error.message } } : {}),
  };
}

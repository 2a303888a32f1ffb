import { shownOutputs } from '../../../engine/run/final-outputs.ts';
import { type Run, statusOf } from '../../../engine/run/run.ts';
import type { CallResult } from '../../../protocol/running/calls.ts';
import { sha256Hex } from '../../../system/digest.ts';

/** What came of a run, or how it stands. */
export type RunResult = Pick<CallResult, 'status' | 'outputs' | 'error'>;

/** The result of a run for the caller that started it: status, outputs of its last nodes, and the error. */
export function resultOfRun(run: Run): RunResult {
  const error = run.error && { code: run.error.code, message: run.error.message };
  return {
    status: statusOf(run),
    outputs: shownOutputs(run, sha256Hex) as RunResult['outputs'],
    ...(error ? { error: run.known ? run.known.mask(error) : error } : {}),
  };
}

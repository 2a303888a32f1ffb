import { maskKnown } from '../../../engine/masking/learning.ts';
import { maskRunOutputs } from '../../../engine/masking/mask.ts';
import { finalOutputs } from '../../../engine/run/next.ts';
import { type Run, statusOf } from '../../../engine/run/run.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { CallResult } from '../../../protocol/running/calls.ts';
import { sha256Hex } from '../../../system/digest.ts';

/** What came of a run, or how it stands. */
export type RunResult = Pick<CallResult, 'status' | 'outputs' | 'error'>;

/** The result of a run for the caller that started it: status, outputs of its last nodes, and the error. */
export function resultOfRun(run: Run): RunResult {
  const error = run.error && { code: run.error.code, message: run.error.message };
  return {
    status: statusOf(run),
    outputs: maskedOutputs(run),
    ...(error ? { error: run.known ? (maskKnown(run.known, error) as typeof error) : error } : {}),
  };
}

/** Masked as in a snapshot: the ids of nodes are never masked, only what the nodes gave. */
function maskedOutputs(run: Run): Record<string, JsonObject> {
  const { plan, known } = run;
  const byPlace = maskRunOutputs(plan, finalOutputs(run), sha256Hex) as Record<string, JsonObject>;
  if (!known) return byPlace;
  return Object.fromEntries(Object.entries(byPlace).map(([nodeId, outputs]) => [nodeId, known.mask(outputs)]));
}

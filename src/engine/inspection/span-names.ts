/**
 * What the ids of spans are derived from: facts that every host knows at any time, so that a run continues its spans
 * after a restart and on another host, and nothing has to be stored for it.
 */

/** Hexadecimal digits of a span id. */
export const SPAN_ID_DIGITS = 16;

/** The span of a run. */
export function runSpan(runId: string): string {
  return `run ${runId}`;
}

/** The span of a node, from its first attempt until it settles. A loop that starts the node again has another. */
export function nodeSpan(runId: string, nodeId: string, firstAttempt: number): string {
  return `node ${runId} ${firstAttempt} ${nodeId}`;
}

/** The span of one attempt at a node. */
export function attemptSpan(runId: string, nodeId: string, attempt: number): string {
  return `attempt ${runId} ${attempt} ${nodeId}`;
}

/** The span of an append to the log, by the sequence of its first event. */
export function appendSpan(runId: string, firstSequence: number): string {
  return `append ${runId} ${firstSequence}`;
}

/** The span of an interrupt while it waits for its answer. */
export function interruptSpan(runId: string, interruptId: string): string {
  return `interrupt ${runId} ${interruptId}`;
}

/** The span of one try at an effect: a retry has the same effect id and is another span. */
export function effectSpan(effectId: string, attempt: number): string {
  return `effect ${effectId} ${attempt}`;
}

import type { RetryReason } from '../../../protocol/ai/models.ts';
import { type NodeContext, NodeFailure } from '../../../runtime/node-type.ts';
import { LIMITS } from './limits.ts';

/** How often a model is asked for one answer. */
export const ATTEMPTS_MAX = LIMITS.schemaRounds + 1;

/** Why an answer is not usable. */
export interface Misfit {
  readonly reason: RetryReason;
  readonly problem: string;
  /** Error code of the node after the last attempt, where `envelope_invalid` says too little. */
  readonly code?: string;
}

/** Counts how often a model had to be asked again for the same answer, and fails the node when it was too often. */
export class Rounds {
  readonly #context: NodeContext;
  #misfits = 0;
  #retries = 0;

  constructor(context: NodeContext) {
    this.#context = context;
  }

  /** How often the model was asked again in all. */
  get retries(): number {
    return this.#retries;
  }

  /** Records that the model is asked again; throws after the last attempt. */
  again(misfit: Misfit): void {
    if (++this.#misfits >= ATTEMPTS_MAX) throw this.#exhausted(misfit);
    this.#retries++;
    const { reason, problem } = misfit;
    const { id: nodeId } = this.#context.node;
    const payload = { nodeId, attempt: this.#misfits + 1, reason, previousError: problem };
    this.#context.emitStep({ type: 'envelope.retry.attempted', nodeId, payload });
  }

  /** An answer was usable: the next one may be wrong as often again. */
  startOver(): void {
    this.#misfits = 0;
  }

  #exhausted({ reason, problem, code = 'envelope_invalid' }: Misfit): NodeFailure {
    const { node, emitStep } = this.#context;
    const { id: nodeId } = node;
    emitStep({
      type: 'envelope.retry.exhausted',
      nodeId,
      payload: { nodeId, totalAttempts: ATTEMPTS_MAX, finalReason: reason, finalError: problem },
    });
    const limit = LIMITS.schemaRounds;
    emitStep({
      type: 'cap.breached',
      nodeId,
      payload: { kind: 'schema', limit, observed: ATTEMPTS_MAX, nodeId },
    });
    if (reason === 'truncation') {
      const message = `All ${ATTEMPTS_MAX} answers were cut off at their token limit.`;
      return finalFailure('envelope_truncation_unrecoverable', message);
    }
    const wanted = code === 'envelope_invalid' ? 'matches the schema' : 'is acceptable';
    return finalFailure(code, `None of ${ATTEMPTS_MAX} answers ${wanted}: ${problem}`);
  }
}

/** Not retryable: the answers are recorded effects, so another attempt of the node would get the same ones. */
export function finalFailure(code: string, message: string, details?: Record<string, unknown>): NodeFailure {
  return new NodeFailure({ code, message, ...(details ? { details } : {}), retryable: false });
}

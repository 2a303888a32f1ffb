import { refuse } from '../../../protocol/errors.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Answer } from '../../request.ts';

/** Answers with a refusal where a service finds fault with what a test gave it, as it would fail the node. */
export async function orRefused(attempt: () => Promise<Answer>): Promise<Answer> {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error;
    return refuse('validation_error', error.message);
  }
}

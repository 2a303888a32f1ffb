import { ExpressionError, expressionLanguage } from '../../../engine/expressions/expression.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { checkObservation, nextTick, problemAt } from '../heartbeats/service.ts';

const PREDICATE = expressionLanguage(['observed']);

/** How long it is tried again to keep a commitment that is due, and how soon. */
const GIVE_UP_MS = 24 * 60 * 60_000;
const RETRY_MS = 10_000;
/** What was due a moment ago is still kept. */
const GRACE_MS = 60_000;
const HORIZON_MS = 3_660 * 24 * 60 * 60_000;

/** What is wrong with what somebody wrote down. */
export function checkCommitment({ at, everySec, predicate }: CommitmentRequest, now: number): Refusal | undefined {
  if ((at === undefined) === (predicate === undefined)) {
    return misfit('at', 'A commitment has either at or predicate.');
  }
  if (everySec !== undefined && at === undefined) return misfit('everySec', 'everySec goes with at.');
  if (predicate) {
    return (
      checkObservation('predicate.observe', predicate.observe) ??
      problemAt('predicate.when', predicate.when, PREDICATE.compile)
    );
  }
  const time = Date.parse(at!);
  if (Number.isNaN(time)) return misfit('at', 'at is no time that there is.');
  if (time < now - GRACE_MS) return misfit('at', 'at is in the past.');
  return time - now > HORIZON_MS ? misfit('at', 'at is further ahead than this host looks.') : undefined;
}

/** Whether a predicate holds of what was seen; a text says why nobody can tell. */
export function holds(when: string, observed: unknown): boolean | string {
  try {
    return PREDICATE.compile(when)({ observed }) === true;
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return `The expression failed: ${error.message}.`;
  }
}

/** When to look again at one that was kept; undefined where once is enough. */
export function nextLook(
  { at, everySec, predicate }: Omit<CommitmentRequest, 'inputs'>,
  now: number,
): number | undefined {
  if (predicate) return predicate.repeats ? now + predicate.everySec * 1_000 : undefined;
  return everySec === undefined ? undefined : nextTick(Date.parse(at!), everySec, now);
}

/** When to try again to keep what has been due since `metAt`; undefined once there is no point any more. */
export function retryAt(metAt: number, now: number): number | undefined {
  return now - metAt < GIVE_UP_MS ? now + RETRY_MS : undefined;
}

function misfit(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}

import { expressionLanguage } from '../../../engine/expressions/expression.ts';
import { ExpressionError } from '../../../engine/expressions/expression-error.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { checkObservation } from '../starter/observing.ts';
import { checkExpression, GRACE_MS, HORIZON_MS, invalidField, nextTick } from '../starter/rules.ts';

const PREDICATE = expressionLanguage(['observed']);

/** How long starting the run of a commitment is retried, and how soon. */
const GIVE_UP_MS = 24 * 60 * 60_000;
const RETRY_MS = 10_000;

/** Refuses a request whose condition is missing, ambiguous or impossible. */
export function checkCommitment({ at, everySec, predicate }: CommitmentRequest, now: number): Refusal | undefined {
  if ((at === undefined) === (predicate === undefined)) {
    return invalidField('at', 'A commitment must have either at or predicate.');
  }
  if (everySec !== undefined && at === undefined) return invalidField('everySec', 'everySec requires at.');
  if (predicate) {
    return (
      checkObservation('predicate.observe', predicate.observe) ??
      checkExpression('predicate.when', predicate.when, PREDICATE.compile)
    );
  }
  const time = Date.parse(at!);
  if (Number.isNaN(time)) return invalidField('at', 'at is not a valid time.');
  if (time < now - GRACE_MS) return invalidField('at', 'at is in the past.');
  return time - now > HORIZON_MS ? invalidField('at', 'at is further ahead than this host plans.') : undefined;
}

/** Whether a predicate is true of what was observed; a text if it cannot be evaluated. */
export function holds(when: string, observed: unknown): boolean | string {
  try {
    return PREDICATE.compile(when)({ observed }) === true;
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return `The expression failed: ${error.message}.`;
  }
}

/** When a commitment that has just started a run is evaluated again; undefined if one run is all it starts. */
export function nextCheck(
  { at, everySec, predicate }: Omit<CommitmentRequest, 'inputs'>,
  now: number,
): number | undefined {
  if (predicate) return predicate.repeats ? now + predicate.everySec * 1_000 : undefined;
  return everySec === undefined ? undefined : nextTick(Date.parse(at!), everySec, now);
}

/** When to retry a run that has been due since `metAt`; undefined once it is given up. */
export function retryAt(metAt: number, now: number): number | undefined {
  return now - metAt < GIVE_UP_MS ? now + RETRY_MS : undefined;
}

/**
 * Thrown when an invariant of the engine is violated: a bug, not a failure of the run. The attempt stops and the run
 * stays as its log says.
 */
export class InvariantViolation extends Error {
  override readonly name = 'InvariantViolation';
}

/** Throws if an invariant does not hold; `promise` states the invariant, as a sentence that should be true. */
export function assert(condition: unknown, promise: string): asserts condition {
  if (!condition) throw new InvariantViolation(promise);
}

import type { RunError } from '../protocol/errors.ts';

/** Thrown by a node or an effect to fail the attempt with a specific error code. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
  readonly error: RunError;

  constructor(error: RunError) {
    super(error.message);
    this.error = error;
  }
}

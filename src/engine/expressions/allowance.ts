import { ExpressionError } from './expression-error.ts';

/** Steps that the expressions of one moment take together; about 70 ms in the worst case. */
const STEPS_TOGETHER_MAX = 500_000;

/**
 * What expressions that are evaluated at the same moment may take together: the conditions of all edges of a node, the
 * ports of a node, the criteria of a verdict. Each of them has a limit of its own, but a definition may have thousands,
 * and nobody else is served meanwhile. Counted in steps, so that every fold of the same log comes to the same result.
 */
export class Allowance {
  #left = STEPS_TOGETHER_MAX;

  /** Throws ExpressionError once more is spent than there is. */
  spend(steps: number): void {
    this.#left -= steps;
    this.check();
  }

  /** Throws ExpressionError if more was spent than there is: what was evaluated since then does not count. */
  check(): void {
    if (this.#left < 0) {
      throw new ExpressionError(`expressions that are evaluated together take more than ${STEPS_TOGETHER_MAX} steps`);
    }
  }
}

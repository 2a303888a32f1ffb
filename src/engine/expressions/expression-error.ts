/**
 * Thrown when an expression is invalid or cannot be evaluated. The message never quotes values, which may be sensitive.
 */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
}

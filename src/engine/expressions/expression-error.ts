/**
 * Thrown when an expression is invalid or cannot be evaluated. The message never quotes values, which may be sensitive.
 */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
}

/** An expression uses a name that is not in scope. Whoever knows what it could mean may say so. */
export class UnknownNameError extends ExpressionError {
  readonly unknownName: string;

  constructor(unknownName: string, place: string, scope: readonly string[]) {
    super(`unknown name ${unknownName}${place}; ${adviceFor(unknownName, scope)}`);
    this.unknownName = unknownName;
  }
}

function adviceFor(name: string, scope: readonly string[]): string {
  const [only, ...others] = scope;
  return others.length === 0 ? `write ${only}.${name}` : `the names here are ${scope.join(', ')}`;
}

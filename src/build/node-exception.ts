/** An exception that the code of a node did not mean: anything but what `fatal` and `retryable` make. */
export interface NodeException {
  readonly runId: string;
  readonly nodeId: string;
  readonly typeId: string;
  readonly error: unknown;
}

/** Writes an exception with its stack to the standard error: the run shows the message only. */
export function printException({ runId, nodeId, typeId, error }: NodeException): void {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`The code of ${typeId} threw an exception at the node ${nodeId} of ${runId}:\n${stack}\n`);
}

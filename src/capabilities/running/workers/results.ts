import type { RunError } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { SchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { declarationOf } from './document.ts';
import type { WorkerTaskRow, WorkerTypeRow } from './records.ts';

/** What a worker reported. */
interface Reported {
  readonly outputs?: JsonObject;
  readonly error?: RunError;
  readonly logs?: readonly LogLine[];
}

interface LogLine {
  readonly message: string;
  readonly fields?: JsonObject;
}

/** What an attempt resulted in, with the lines for the log of the run. */
type TaskResult = { readonly logs: readonly LogLine[] } & (
  | { readonly outputs: JsonObject }
  | { readonly error: RunError }
);

/** The result of a task that is over; outputs that do not fit what was declared are an error. */
export async function resultOf(
  task: Pick<WorkerTaskRow, 'outcome' | 'type_id'>,
  type: WorkerTypeRow | undefined,
  schemas: SchemaValidator,
): Promise<TaskResult> {
  if (task.outcome === null) return { logs: [], error: timedOut(task.type_id) };
  const { outputs = {}, error, logs = [] } = JSON.parse(task.outcome) as Reported;
  if (error) return { logs, error };
  const schema = type && declarationOf(type).outputs;
  const problems = schema ? await schemas.validate(schema, outputs) : [];
  if (problems.length === 0) return { logs, outputs };
  const message = `A worker of ${task.type_id} returned outputs that do not fit its schema: ${problems.join('; ')}.`;
  return { logs, error: { code: 'invalid_outputs', message, retryable: false } };
}

/** The error of an attempt that nobody made in time. */
export function timedOut(typeId: string): RunError {
  return {
    code: 'node_timeout',
    message: `No worker returned a result for ${typeId} before the deadline.`,
    retryable: true,
  };
}

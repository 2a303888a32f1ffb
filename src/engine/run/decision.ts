import type { Refusal } from '../../protocol/errors.ts';
import type { NewEvent } from '../../protocol/running/events.ts';

/** The result of a command on a run: events to append, a refusal, or a refusal that is itself recorded. */
export type Decision = readonly NewEvent[] | Refusal | RecordedRefusal;

/** A refusal with events that record the attempt, such as a denied approval. */
interface RecordedRefusal {
  readonly record: readonly NewEvent[];
  readonly refusal: Refusal;
}

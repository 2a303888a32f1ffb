import type { Answer } from '../support/api.ts';

/** An event as a reader got it. */
export interface ReadEvent {
  readonly sequence: number;
  readonly type: string;
  readonly eventId: string;
}

/** What a client asked, when, and what it was told; without `to` there was no answer. Times are of one clock. */
export interface Operation {
  readonly what: 'create' | 'cancel' | 'events' | 'snapshot';
  readonly key?: string;
  readonly runId?: string;
  readonly from: number;
  to?: number;
  status?: number;
  body?: Answer['body'];
}

/** A delivery as it arrived, in the order of arrival. */
export interface Delivery {
  readonly runId: string;
  readonly sequence: number;
  readonly deliveryId: string;
  /** The receiver said that it has it. */
  readonly isAcknowledged: boolean;
}

/** Everything that clients and receivers saw, and what is stored once everybody is at rest. */
export interface History {
  readonly operations: readonly Operation[];
  /** The log of each run. */
  readonly logs: ReadonlyMap<string, readonly ReadEvent[]>;
  /** The runs that each idempotency key made. */
  readonly runsByKey: ReadonlyMap<string, readonly string[]>;
  /** The types of events that the receiver wants. */
  readonly wanted: readonly string[];
  readonly deliveries: readonly Delivery[];
  /** The slots of a schedule for which there is a run; and those that must be there, because nothing was wrong then. */
  readonly slots: { readonly found: readonly number[]; readonly everyMs: number; readonly due: readonly number[] };
}

/** Records an operation from the request to the answer. */
export async function record(
  operations: Operation[],
  operation: Omit<Operation, 'from' | 'to' | 'status' | 'body'>,
  send: () => Promise<Answer>,
): Promise<Operation> {
  const entry: Operation = { ...operation, from: performance.now() };
  operations.push(entry);
  const answer = await send().catch(() => undefined);
  // A host that dies gives no answer, and nobody knows what came of the request.
  if (answer) Object.assign(entry, { to: performance.now(), status: answer.status, body: answer.body });
  return entry;
}

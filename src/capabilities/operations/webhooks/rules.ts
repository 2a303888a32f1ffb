import { runSpan } from '../../../engine/inspection/span-names.ts';
import type { RunFacts } from '../../../engine/run/run.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { type RunTrace, type TraceHeaders, traceHeaders } from '../../../protocol/format/trace.ts';
import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { traceOf } from '../../../runtime/tracing.ts';
import { sha256Hex, spanIdOf } from '../../../system/digest.ts';

/** How often and how long the delivery of an event is retried. */
export interface RetryPolicy {
  readonly attempts: number;
  /** Counted from the first failure, for every event that waits behind it. */
  readonly windowMs: number;
  /** The backoff after the first failure; it doubles with each further one. */
  readonly retryMs: number;
}

/** How far the deliveries of one run to one webhook have come; the payload of their work item. */
export interface DeliveryCursor {
  /** Every event up to this sequence is delivered or dead. */
  readonly after: number;
  /** The last sequence to send, if a single event is sent again. */
  readonly through?: number;
  /** The trace of the run, whose span is the parent of every delivery. */
  readonly trace?: TraceHeaders | undefined;
  readonly workflowId?: string | undefined;
  /** Failed attempts to send the next event. */
  readonly attempts: number;
  readonly dueAt: number;
  /** When the first of the consecutive failures was. */
  readonly failingSince?: number | undefined;
  /** Consecutive times that it was postponed because the receiver was at its limit. */
  readonly waits: number;
}

/** The run whose events are delivered. */
interface DeliveredRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly trace: RunTrace | undefined;
}

/** A run with the trace that its deliveries belong to. */
export function deliveredRun(runtime: Partial<Pick<Runtime, 'tracing'>>, facts: RunFacts): DeliveredRun {
  const { runId, workflowId } = facts;
  return { runId, workflowId, trace: traceOf(runtime, facts) };
}

/** A cursor that starts behind a sequence. */
export function newCursor(
  after: number,
  { through, run }: { readonly through?: number; readonly run?: DeliveredRun } = {},
): DeliveryCursor {
  return {
    after,
    attempts: 0,
    dueAt: 0,
    waits: 0,
    ...(through === undefined ? {} : { through }),
    ...(run?.trace ? { trace: traceHeaders(run.trace, spanIdOf(runSpan(run.runId))), workflowId: run.workflowId } : {}),
  };
}

/** The cursor and the state of the delivery after an attempt. */
export interface AttemptOutcome {
  readonly cursor: DeliveryCursor;
  readonly state: DeliveryState;
}

const BACKOFF_MAX_MS = 60 * 60 * 1_000;
/** Backoffs are up to this much longer, so that deliveries that failed together are not retried together. */
const JITTER = 0.25;

/** Moves the cursor after an attempt to send the event with this sequence. The jitter is derived from `name`. */
export function afterAttempt(
  cursor: DeliveryCursor,
  attempt: { readonly sequence: number; readonly isDelivered: boolean; readonly at: number; readonly name: string },
  policy: RetryPolicy,
): AttemptOutcome {
  const { sequence, isDelivered, at, name } = attempt;
  const { failingSince = at, ...rest } = cursor;
  const moved = { ...rest, after: sequence, attempts: 0, dueAt: 0, waits: 0 };
  if (isDelivered) return { cursor: moved, state: 'delivered' };
  const attempts = cursor.attempts + 1;
  const dueAt = at + backoffAfter(attempts, policy.retryMs, name);
  if (attempts >= policy.attempts || dueAt > failingSince + policy.windowMs) {
    return { cursor: { ...moved, failingSince }, state: 'dead' };
  }
  return { cursor: { ...cursor, failingSince, attempts, dueAt, waits: 0 }, state: 'pending' };
}

function backoffAfter(attempts: number, retryMs: number, name: string): number {
  const pause = Math.min(retryMs * 2 ** (attempts - 1), BACKOFF_MAX_MS);
  return Math.round(pause * (1 + JITTER * fractionOf(`${name} ${attempts}`)));
}

const POSTPONE_MS = 250;
const POSTPONE_MAX_MS = 60_000;

/** Tries again soon, then with increasing delays, while the receiver is at its limit. */
export function postpone(cursor: DeliveryCursor, at: number, name: string): DeliveryCursor {
  const pause = Math.min(POSTPONE_MS * 2 ** cursor.waits, POSTPONE_MAX_MS);
  return { ...cursor, waits: cursor.waits + 1, dueAt: Math.round(at + pause * (1 + JITTER * fractionOf(name))) };
}

/** A number in [0, 1) derived from a name: jitter that needs no random source. */
function fractionOf(name: string): number {
  return Number.parseInt(sha256Hex(name).slice(0, 8), 16) / 2 ** 32;
}

/** The scope of a subscription on the wire: the workspace, or the tenant of a caller that is bound to none. */
export function scopeNameOf({ workspace, tenantName }: Subject): string {
  return workspace ?? tenantName;
}

/** Refuses a scope that the caller names and does not belong to. */
export function refuseForeignScope(subject: Subject, named: string | undefined): Refusal | undefined {
  if (named === undefined || named === scopeNameOf(subject)) return undefined;
  return refuse('forbidden', 'tenantId is not the workspace or tenant of your key. Leave it out, or use another key.', {
    field: 'tenantId',
  });
}

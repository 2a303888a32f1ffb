import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { sha256Hex } from '../../../system/digest.ts';

/** How long and how often one event is tried. */
export interface RetryPolicy {
  readonly attempts: number;
  /** From the first failure in a lane, for all that waits in it. */
  readonly windowMs: number;
  /** The pause after the first failure; each further one is twice as long. */
  readonly retryMs: number;
}

/** Where a lane stands: events of one run on their way to one webhook, one after the other. */
export interface Lane {
  /** Everything up to here is delivered or dead. */
  readonly after: number;
  /** Where it ends, for a lane that sends one event again. */
  readonly through?: number;
  /** How often the event that comes next was tried. */
  readonly attempts: number;
  readonly dueAt: number;
  /** Since when nothing has come through. */
  readonly failingSince?: number | undefined;
  /** Times in a row that it stood back for others. */
  readonly waits: number;
}

export function newLane(after: number, through?: number): Lane {
  return { after, attempts: 0, dueAt: 0, waits: 0, ...(through === undefined ? {} : { through }) };
}

export interface Judgement {
  readonly lane: Lane;
  readonly state: DeliveryState;
}

const PAUSE_MAX_MS = 60 * 60 * 1_000;
/** Pauses are up to this much longer, so that what failed together does not come back together. */
const SPREAD = 0.25;

/** What an attempt to send the event with this sequence means for its lane. `name` decides the spread. */
export function judgeAttempt(
  lane: Lane,
  attempt: { readonly sequence: number; readonly isDelivered: boolean; readonly at: number; readonly name: string },
  policy: RetryPolicy,
): Judgement {
  const { sequence, isDelivered, at, name } = attempt;
  const { failingSince = at, ...rest } = lane;
  const moved = { ...rest, after: sequence, attempts: 0, dueAt: 0, waits: 0 };
  if (isDelivered) return { lane: moved, state: 'delivered' };
  const attempts = lane.attempts + 1;
  const dueAt = at + pauseAfter(attempts, policy.retryMs, name);
  if (attempts >= policy.attempts || dueAt > failingSince + policy.windowMs) {
    return { lane: { ...moved, failingSince }, state: 'dead' };
  }
  return { lane: { ...lane, failingSince, attempts, dueAt, waits: 0 }, state: 'pending' };
}

function pauseAfter(attempts: number, retryMs: number, name: string): number {
  const pause = Math.min(retryMs * 2 ** (attempts - 1), PAUSE_MAX_MS);
  return Math.round(pause * (1 + SPREAD * fractionOf(`${name} ${attempts}`)));
}

const STAND_BACK_MS = 250;
const STAND_BACK_MAX_MS = 60_000;

/** A lane that lets others go first comes back soon, then later and later. */
export function standBack(lane: Lane, at: number, name: string): Lane {
  const pause = Math.min(STAND_BACK_MS * 2 ** lane.waits, STAND_BACK_MAX_MS);
  return { ...lane, waits: lane.waits + 1, dueAt: Math.round(at + pause * (1 + SPREAD * fractionOf(name))) };
}

/** A number in [0, 1) that a name decides: it spreads what would otherwise happen at once, and needs no chance. */
function fractionOf(name: string): number {
  return Number.parseInt(sha256Hex(name).slice(0, 8), 16) / 2 ** 32;
}

/** What a subscription is called on the wire: the workspace, or the tenant of somebody who is bound to none. */
export function scopeNameOf({ workspace, tenantName }: Subject): string {
  return workspace ?? tenantName;
}

/** Whoever names a scope must be in it. */
export function refuseForeignScope(subject: Subject, named: string | undefined): Refusal | undefined {
  if (named === undefined || named === scopeNameOf(subject)) return undefined;
  return refuse('forbidden', 'You are not a member of this tenantId.', { field: 'tenantId' });
}

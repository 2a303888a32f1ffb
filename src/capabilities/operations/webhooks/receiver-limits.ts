import { BoundedCache } from '../../../runtime/bounded-cache.ts';

/** Work items per webhook that may be handled at once, by how its last attempt went. */
const AT_ONCE = { untried: 16, delivered: Number.POSITIVE_INFINITY, failed: 4 };
const CACHED_MAX = 10_000;

type LastAttempt = keyof typeof AT_ONCE;

/**
 * Limits concurrent deliveries per webhook. A receiver that has not answered well yet, or no longer does, gets few, so
 * that one that is down or slow does not delay the others.
 */
export class ReceiverLimits {
  readonly #inFlight = new Map<string, number>();
  readonly #last = new BoundedCache<string, LastAttempt>(CACHED_MAX);

  /** False if the receiver has reached its limit; then `leave` must not be called. */
  enter(webhookId: string): boolean {
    const inFlight = this.#inFlight.get(webhookId) ?? 0;
    if (inFlight >= AT_ONCE[this.#last.get(webhookId) ?? 'untried']) return false;
    this.#inFlight.set(webhookId, inFlight + 1);
    return true;
  }

  /** Notes how an attempt went, which sets the limit from now on. */
  note(webhookId: string, isDelivered: boolean): void {
    this.#last.set(webhookId, isDelivered ? 'delivered' : 'failed');
  }

  leave(webhookId: string): void {
    const inFlight = this.#inFlight.get(webhookId)! - 1;
    if (inFlight > 0) this.#inFlight.set(webhookId, inFlight);
    else this.#inFlight.delete(webhookId);
  }
}

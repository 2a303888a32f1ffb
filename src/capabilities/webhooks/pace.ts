/** Lanes to one webhook that may be in hand at once while it does not answer well. */
const FAILING_AT_ONCE = 4;

interface Receiver {
  inHand: number;
  isFailing: boolean;
}

/**
 * Who gets a place among those who are being delivered to. A receiver whose last attempt failed gets few, so that
 * one which is down, or slow to say no, does not keep the others waiting.
 */
export class Pace {
  readonly #receivers = new Map<string, Receiver>();

  /** False when this receiver has places enough; then `leave` must not be called. */
  enter(webhookId: string): boolean {
    const receiver = this.#receivers.get(webhookId) ?? { inHand: 0, isFailing: false };
    if (receiver.isFailing && receiver.inHand >= FAILING_AT_ONCE) return false;
    receiver.inHand++;
    this.#receivers.set(webhookId, receiver);
    return true;
  }

  note(webhookId: string, isDelivered: boolean): void {
    const receiver = this.#receivers.get(webhookId);
    if (receiver) receiver.isFailing = !isDelivered;
  }

  leave(webhookId: string): void {
    const receiver = this.#receivers.get(webhookId);
    if (receiver && --receiver.inHand === 0 && !receiver.isFailing) this.#receivers.delete(webhookId);
  }

  /** It is gone for good. */
  forget(webhookId: string): void {
    this.#receivers.delete(webhookId);
  }
}

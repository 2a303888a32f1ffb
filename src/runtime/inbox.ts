import type { Message } from './attempts.ts';

/** Somebody who waits for a commit. */
interface CommitWaiter {
  resolve(): void;
  reject(error: Error): void;
}

/** What the attempts of a run tell its drive, and what they ask of it, in order. */
export class Inbox {
  readonly #onArrival: () => void;
  #queue: (Message | CommitWaiter)[] = [];
  /** Those before whom nothing is left to be handled: the next commit is theirs. */
  readonly #waiting: CommitWaiter[] = [];

  constructor(onArrival: () => void) {
    this.#onArrival = onArrival;
  }

  /** Whether nothing is left to be handled, and nobody waits for a commit. */
  get isEmpty(): boolean {
    return this.#queue.length === 0 && this.#waiting.length === 0;
  }

  send(message: Message): void {
    this.#queue.push(message);
    this.#onArrival();
  }

  /** Resolves with the first commit that has everything which was sent before. One that is under way does not have it. */
  nextCommit(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ resolve, reject });
      this.#onArrival();
    });
  }

  /** The next message to be handled. */
  take(): Message | undefined {
    for (;;) {
      const next = this.#queue.shift();
      if (!next || !('reject' in next)) return next;
      this.#waiting.push(next);
    }
  }

  /** To be called after a commit of all that was taken. */
  committed(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** Whether a message of a node is not handled yet. */
  has(nodeId: string): boolean {
    return this.#queue.some((message) => isOf(message, nodeId));
  }

  /** Forgets the messages of a node. */
  drop(nodeId: string): void {
    this.#queue = this.#queue.filter((message) => !isOf(message, nodeId));
  }

  /** Refuses all who wait for a commit. */
  refuse(error: Error): void {
    const queued = this.#queue.filter((message) => 'reject' in message);
    for (const { reject } of [...this.#waiting.splice(0), ...queued]) reject(error);
  }
}

function isOf(message: Message | CommitWaiter, nodeId: string): boolean {
  return 'nodeId' in message && message.nodeId === nodeId;
}

import { RefusedError, UnreachableError } from './errors.ts';
import { type Machine, sleep } from './machine.ts';

/** When and how long failed requests are retried. */
export interface RetryPolicy {
  /** The number of attempts, including the first. */
  readonly attempts: number;
  /** The total time that retries may take without a success. */
  readonly patienceMs: number;
  /** The upper bound of the first pause; it doubles with each further one. */
  readonly firstPauseMs: number;
  /** The upper bound of every pause. */
  readonly longestPauseMs: number;
}

/** The default for single calls. */
export const CALL_RETRY: RetryPolicy = { attempts: 4, patienceMs: 60_000, firstPauseMs: 200, longestPauseMs: 10_000 };

/** For streams and waits, which must survive the restart of a host. */
export const RESTART_RETRY: RetryPolicy = {
  attempts: Number.POSITIVE_INFINITY,
  patienceMs: 300_000,
  firstPauseMs: 200,
  longestPauseMs: 5_000,
};

/** Statuses that a host or a proxy sends when the same request may succeed later. */
const RETRYABLE_STATUSES: readonly number[] = [408, 429, 502, 503, 504];

/** Returns true for errors that are worth a retry. */
function isRetryable(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  if (!(error instanceof RefusedError)) return false;
  return RETRYABLE_STATUSES.includes(error.status) || error.code === 'idempotency_in_flight';
}

/** Counts consecutive failures and waits between attempts, with full jitter and never less than `Retry-After`. */
export class Backoff {
  readonly #machine: Machine;
  readonly #policy: RetryPolicy;
  readonly #signal: AbortSignal | undefined;
  #failures = 0;
  #firstFailureAt = 0;

  constructor(machine: Machine, policy: RetryPolicy, signal: AbortSignal | undefined) {
    this.#machine = machine;
    this.#policy = policy;
    this.#signal = signal;
  }

  /** Waits before the next attempt, or throws the error when it is not retryable or the policy is exhausted. */
  async after(error: unknown): Promise<void> {
    this.#signal?.throwIfAborted();
    if (!isRetryable(error)) throw error;
    const { attempts, patienceMs, firstPauseMs, longestPauseMs } = this.#policy;
    if (this.#failures === 0) this.#firstFailureAt = this.#machine.now();
    this.#failures++;
    const bound = Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failures - 1));
    const requestedMs = error instanceof RefusedError ? (error.retryAfterMs ?? 0) : 0;
    const ms = Math.max(requestedMs, bound * this.#machine.chance());
    const isExhausted = this.#failures >= attempts || this.#machine.now() + ms - this.#firstFailureAt > patienceMs;
    if (isExhausted) throw error;
    await sleep(this.#machine, ms, this.#signal);
  }

  /** Call after a success: the next failure counts as the first. */
  reset(): void {
    this.#failures = 0;
  }
}

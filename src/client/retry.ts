import { RefusedError, UnreachableError } from './errors.ts';
import { type Machine, pause } from './machine.ts';

export interface RetryPolicy {
  /** How often one thing is tried. */
  readonly attempts: number;
  /** How long it may go wrong without a break. */
  readonly patienceMs: number;
  /** The longest first pause; each further one may be twice as long. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

/** For a call that somebody waits for. */
export const PROMPT: RetryPolicy = { attempts: 4, patienceMs: 60_000, firstPauseMs: 200, longestPauseMs: 10_000 };

/** For what goes on while a host restarts: streams, and waits for the end of a run. */
export const PATIENT: RetryPolicy = {
  attempts: Number.POSITIVE_INFINITY,
  patienceMs: 300_000,
  firstPauseMs: 200,
  longestPauseMs: 5_000,
};

/** Statuses of a host, or of something in front of it, that will do what was asked a little later. */
const PASSING: readonly number[] = [408, 429, 502, 503, 504];

export function isPassing(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  if (!(error instanceof RefusedError)) return false;
  return PASSING.includes(error.status) || error.code === 'idempotency_in_flight';
}

/** Failures in a row, and the pauses between them: full jitter, and never sooner than the host asks. */
export class Backoff {
  readonly #machine: Machine;
  readonly #policy: RetryPolicy;
  readonly #signal: AbortSignal | undefined;
  #failures = 0;
  #since = 0;

  constructor(machine: Machine, policy: RetryPolicy, signal: AbortSignal | undefined) {
    this.#machine = machine;
    this.#policy = policy;
    this.#signal = signal;
  }

  /** Waits before the next attempt, or throws the error when there is to be none. */
  async after(error: unknown): Promise<void> {
    this.#signal?.throwIfAborted();
    if (!isPassing(error)) throw error;
    const { attempts, patienceMs, firstPauseMs, longestPauseMs } = this.#policy;
    if (this.#failures === 0) this.#since = this.#machine.now();
    this.#failures++;
    const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failures - 1));
    const asked = error instanceof RefusedError ? (error.retryAfterMs ?? 0) : 0;
    const ms = Math.max(asked, longest * this.#machine.chance());
    const isOver = this.#failures >= attempts || this.#machine.now() + ms - this.#since > patienceMs;
    if (isOver) throw error;
    await pause(this.#machine, ms, this.#signal);
  }

  /** Something went well: the next failure is a first one. */
  reset(): void {
    this.#failures = 0;
  }
}

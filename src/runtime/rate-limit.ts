import { type Refusal, refuse } from '../protocol/errors.ts';
import { BoundedCache } from './bounded-cache.ts';

/** How many requests a caller may send. */
export interface RateLimit {
  /** Sustained requests per second. */
  readonly perSecond: number;
  /** Requests in a burst. */
  readonly burst: number;
}

/** What callers are told apart by. */
type RateScope = 'key' | 'address' | 'trigger';

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

/** Tolerance for rounding: sums of fractions are not exact. */
const ROUNDING = 1e-6;

/** Buckets in memory; a caller whose bucket was evicted starts with a full one. */
const CALLERS_MAX = 10_000;

/** A token bucket per caller: a key, an address or a trigger. Hosts that share a store share the rate. */
export class RateLimiter {
  readonly #limit: RateLimit;
  readonly #hosts: () => number;
  readonly #scope: RateScope;
  readonly #buckets = new BoundedCache<string, Bucket>(CALLERS_MAX);

  constructor(limit: RateLimit, hosts: () => number, scope: RateScope = 'key') {
    this.#limit = limit;
    this.#scope = scope;
    this.#hosts = hosts;
  }

  /** Takes a token; without one, refuses and says when there will be one. */
  take(caller: string, now: number): Refusal | undefined {
    const perSecond = this.#limit.perSecond / this.#hosts();
    const burst = Math.max(1, this.#limit.burst / this.#hosts());
    const { tokens, at } = this.#buckets.get(caller) ?? { tokens: burst, at: now };
    const filled = Math.min(burst, tokens + (Math.max(0, now - at) * perSecond) / 1_000);
    if (filled >= 1 - ROUNDING) {
      this.#buckets.set(caller, { tokens: Math.max(0, filled - 1), at: now });
      return undefined;
    }
    this.#buckets.set(caller, { tokens: filled, at: now });
    const retryAfterMs = Math.ceil(((1 - filled) / perSecond) * 1_000);
    const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
    return {
      ...refuse('rate_limited', 'Too many requests. Try again after the time in Retry-After.', {
        retryAfterMs: Math.max(retryAfterMs, (seconds - 1) * 1_000),
        scope: this.#scope,
        limit: this.#limit.perSecond,
      }),
      headers: { 'Retry-After': String(seconds) },
    };
  }
}

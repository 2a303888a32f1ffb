import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Refusal } from '../protocol/errors.ts';
import { RateLimiter } from './rate-limit.ts';

describe('a bucket', () => {
  it('gives at once what it holds, and no more', () => {
    const limiter = limiterOf(10, 3);
    expect([1, 2, 3, 4].map(() => limiter.take('a', 0) === undefined)).toEqual([true, true, true, false]);
  });

  it('fills at a steady rate, up to the brim', () => {
    const limiter = limiterOf(10, 3);
    drain(limiter, 'a', 0);
    expect(limiter.take('a', 99)).toBeDefined();
    expect(limiter.take('a', 100)).toBeUndefined();
    expect(limiter.take('a', 150)).toBeDefined();
    expect(limiter.take('a', 200)).toBeUndefined();
    expect(drain(limiter, 'a', 1_000_000)).toBe(3);
  });

  it('belongs to one caller', () => {
    const limiter = limiterOf(1, 1);
    expect(limiter.take('a', 0)).toBeUndefined();
    expect(limiter.take('b', 0)).toBeUndefined();
    expect(limiter.take('a', 0)).toBeDefined();
  });

  it('does not overflow when the clock steps back', () => {
    const limiter = limiterOf(10, 2);
    drain(limiter, 'a', 10_000);
    expect(limiter.take('a', 0)).toBeDefined();
  });

  it('is shared by the hosts that share the store', () => {
    let hosts = 1;
    const limiter = new RateLimiter({ perSecond: 10, burst: 8 }, () => hosts);
    expect(drain(limiter, 'a', 0)).toBe(8);
    hosts = 4;
    expect(drain(limiter, 'b', 0)).toBe(2);
    expect(limiter.take('b', 300)).toBeDefined();
    expect(limiter.take('b', 400)).toBeUndefined();
  });

  it('lets everybody in now and then, however many hosts there are', () => {
    const limiter = new RateLimiter({ perSecond: 1, burst: 2 }, () => 50);
    expect(limiter.take('a', 0)).toBeUndefined();
  });
});

describe('a refusal', () => {
  it('says when to come back, and whose limit it is', () => {
    const limiter = limiterOf(2, 1);
    limiter.take('a', 0);
    expect(limiter.take('a', 100)).toEqual({
      refused: 'rate_limited',
      message: expect.any(String),
      details: { retryAfterMs: 400, scope: 'key', limit: 2 },
      headers: { 'Retry-After': '1' },
    });
  });

  it('is true: who comes back after that time gets in, and the header agrees with the details', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 }),
        (perSecond, burst, hosts, waits) => {
          const limiter = new RateLimiter({ perSecond, burst }, () => hosts);
          let now = 1_000;
          for (const wait of waits) {
            now += wait;
            const refusal = limiter.take('a', now);
            if (!refusal) continue;
            const { retryAfterMs } = refusal.details as { retryAfterMs: number };
            const seconds = Number(refusal.headers!['Retry-After']);
            expect(Number.isInteger(seconds) && seconds >= 1).toBe(true);
            expect(Math.abs(seconds * 1_000 - retryAfterMs)).toBeLessThanOrEqual(1_500);
            now += retryAfterMs;
            expect(limiter.take('a', now)).toBeUndefined();
          }
        },
      ),
      // A third of a token a second is no round number.
      { examples: [[1, 1, 3, [0, 110]]] },
    );
  });

  it('comes to nobody who keeps to the rate, and in no stretch of time do more get in than may', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 80 }),
        (perSecond, burst, waits) => {
          const limiter = limiterOf(perSecond, burst);
          let now = 0;
          const entered: number[] = [];
          for (const wait of waits) {
            now += wait;
            if (limiter.take('a', now) === undefined) entered.push(now);
          }
          for (const [index, from] of entered.entries()) {
            const within = entered.slice(index);
            for (const [count, until] of within.entries()) {
              expect(count + 1).toBeLessThanOrEqual(burst + ((until - from) * perSecond) / 1_000 + 1e-6);
            }
          }
        },
      ),
    );
    const steady = limiterOf(10, 1);
    for (let turn = 0; turn < 100; turn++) expect(steady.take('a', turn * 100)).toBeUndefined();
  });
});

function limiterOf(perSecond: number, burst: number): RateLimiter {
  return new RateLimiter({ perSecond, burst }, () => 1);
}

/** How many get in at once. */
function drain(limiter: RateLimiter, caller: string, now: number): number {
  let count = 0;
  for (let refusal: Refusal | undefined; !refusal; count++) refusal = limiter.take(caller, now);
  return count - 1;
}

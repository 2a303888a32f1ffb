import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Subject } from '../../../runtime/run-row.ts';
import {
  afterAttempt,
  type DeliveryCursor,
  newCursor,
  postpone,
  type RetryPolicy,
  refuseForeignScope,
} from './rules.ts';

const HOUR_MS = 60 * 60 * 1_000;
const POLICY: RetryPolicy = { attempts: 20, windowMs: 24 * HOUR_MS, retryMs: 1_000 };

const fail = (cursor: DeliveryCursor, at: number, policy = POLICY) =>
  afterAttempt(cursor, { sequence: 5, isDelivered: false, at, name: 'dlv-x' }, policy);
const deliver = (cursor: DeliveryCursor, at: number) =>
  afterAttempt(cursor, { sequence: 5, isDelivered: true, at, name: 'dlv-x' }, POLICY);

/** The pauses between attempts that all fail, until the event is dead. */
function pausesOf(policy: RetryPolicy): number[] {
  const pauses: number[] = [];
  let cursor = newCursor(4);
  for (let now = 0; ; ) {
    const outcome = fail(cursor, now, policy);
    if (outcome.state === 'dead') return pauses;
    pauses.push(outcome.cursor.dueAt - now);
    now = outcome.cursor.dueAt;
    cursor = outcome.cursor;
  }
}

describe('an event that was sent', () => {
  it('is behind the cursor once it is delivered, and earlier failures of the receiver are forgotten', () => {
    const { cursor, state } = deliver(fail(newCursor(4), 0).cursor, 1_000);
    expect(state).toBe('delivered');
    expect(cursor).toEqual(newCursor(5));
  });

  it('is tried again within two seconds, then after pauses that double up to an hour', () => {
    const pauses = pausesOf(POLICY);
    expect(pauses).toHaveLength(POLICY.attempts - 1);
    for (const [index, pause] of pauses.entries()) {
      const least = Math.min(1_000 * 2 ** index, HOUR_MS);
      expect(pause).toBeGreaterThanOrEqual(least);
      expect(pause).toBeLessThanOrEqual(least * 1.25);
    }
    expect(pauses[0]).toBeLessThan(2_000);
  });

  it('does not come back together with others that failed together', () => {
    const dueAts = ['a', 'b', 'c', 'd'].map(
      (name) => afterAttempt(newCursor(4), { sequence: 5, isDelivered: false, at: 0, name }, POLICY).cursor.dueAt,
    );
    expect(new Set(dueAts).size).toBe(dueAts.length);
  });

  it('is dead when it was tried often enough', () => {
    expect(pausesOf({ ...POLICY, attempts: 3 })).toHaveLength(2);
    expect(fail(newCursor(4), 0, { ...POLICY, attempts: 1 })).toMatchObject({ state: 'dead', cursor: { after: 5 } });
  });

  it('is dead when it would be tried again too late', () => {
    const pauses = pausesOf({ ...POLICY, attempts: 1_000, windowMs: 10_000 });
    expect(pauses.reduce((sum, pause) => sum + pause, 0)).toBeLessThanOrEqual(10_000);
    expect(pauses).toHaveLength(3);
  });
});

describe('a delivery cursor', () => {
  /** Events one after the other, each attempt as the chance has it, until all are through. */
  function live(outcomes: readonly boolean[], events: number, policy: RetryPolicy) {
    const seen: { sequence: number; state: string; attempts: number; at: number }[] = [];
    let cursor = newCursor(-1);
    let now = 0;
    for (let turn = 0; cursor.after < events - 1; turn++) {
      const sequence = cursor.after + 1;
      now = Math.max(now, cursor.dueAt);
      const attempt = { sequence, isDelivered: outcomes[turn % outcomes.length]!, at: now, name: `dlv-${sequence}` };
      const { attempts } = cursor;
      const outcome = afterAttempt(cursor, attempt, policy);
      expect(outcome.cursor.after).toBe(outcome.state === 'pending' ? cursor.after : sequence);
      seen.push({ sequence, state: outcome.state, attempts: attempts + 1, at: now });
      cursor = outcome.cursor;
    }
    return seen;
  }

  const anyPolicy = fc.record({
    attempts: fc.integer({ min: 1, max: 12 }),
    windowMs: fc.integer({ min: 1, max: 1_000_000 }),
    retryMs: fc.integer({ min: 1, max: 1_500 }),
  });

  it('brings every event to one end, in order, with no more attempts than allowed', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1 }), fc.integer({ min: 1, max: 8 }), anyPolicy, (...args) => {
        const [, events, policy] = args;
        const seen = live(...args);
        const ends = seen.filter(({ state }) => state !== 'pending');
        expect(ends.map(({ sequence }) => sequence)).toEqual(Array.from({ length: events }, (_, index) => index));
        for (const { attempts } of seen) expect(attempts).toBeLessThanOrEqual(policy.attempts);
      }),
    );
  });

  it('keeps nothing waiting for longer than the window while nothing gets through', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), anyPolicy, (events, policy) => {
        for (const { at } of live([false], events, policy)) expect(at).toBeLessThanOrEqual(policy.windowMs);
      }),
    );
  });

  it('stands back for a moment, then for longer and longer, and not for ever', () => {
    let cursor = newCursor(4);
    const pauses: number[] = [];
    for (let times = 0; times < 200; times++) {
      const next = postpone(cursor, 1_000_000, 'name');
      pauses.push(next.dueAt - 1_000_000);
      cursor = next;
    }
    expect(pauses[0]).toBeLessThan(500);
    expect(pauses[1]).toBeGreaterThan(pauses[0]!);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(75_000);
    expect(cursor).toMatchObject({ after: 4, attempts: 0 });
  });
});

describe('a scope that a caller names', () => {
  const subject: Subject = { tenant: 'alpha#test', tenantName: 'alpha', principal: 'ada', issuer: 'i', lane: 'l' };
  const bound = { ...subject, workspace: 'north' };

  it.each([
    ['nothing', subject, undefined],
    ['nothing', bound, undefined],
    ['the tenant', subject, 'alpha'],
    ['the workspace', bound, 'north'],
  ])('may be %s', (_what, who, named) => {
    expect(refuseForeignScope(who, named)).toBeUndefined();
  });

  it.each([
    ['another tenant', subject, 'beta'],
    ['how the tenant is stored', subject, 'alpha#test'],
    ['the tenant of somebody bound to a workspace', bound, 'alpha'],
    ['another workspace', bound, 'south'],
    ['empty', subject, ''],
  ])('may not be %s', (_what, who, named) => {
    expect(refuseForeignScope(who, named)).toMatchObject({ refused: 'forbidden' });
  });
});

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findEffect } from '../../store/effects.ts';
import { addWork, FIRST_EPOCH } from '../../store/queue.ts';
import { openInMemory } from '../../store/sqlite.ts';
import type { Store } from '../../store/store.ts';
import { CORE_TABLES } from '../../store/tables.ts';
import { realClock } from '../../system/real.ts';
import { NodeFailure } from '../node-type.ts';
import { LeaseLost, logicalInvocationId, performOnce } from './ledger.ts';

describe('the identity of an effect', () => {
  const effect = { tenant: 'alpha', runId: 'run-1', nodeId: 'send', ordinal: 0, providerKey: 'model' };

  it('is the digest that the protocol gives', () => {
    const text = ['openwop:activity:v2', 'alpha', 'run-1', 'send', '0', 'model'].join('\0');
    const expected = createHash('sha256')
      .update(text, 'utf8')
      .digest('base64')
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replace(/=+$/, '');
    expect(logicalInvocationId(effect)).toBe(expected);
    expect(logicalInvocationId(effect)).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it('is the same for every attempt, which takes no part in it', () => {
    expect(logicalInvocationId({ ...effect, attempt: 5 } as typeof effect)).toBe(logicalInvocationId(effect));
  });

  it.each([
    ['tenant', { tenant: 'beta' }],
    ['run', { runId: 'run-2' }],
    ['node', { nodeId: 'other' }],
    ['place in the node', { ordinal: 1 }],
    ['provider', { providerKey: 'probe' }],
  ])('is another for another %s', (_what, other) => {
    expect(logicalInvocationId({ ...effect, ...other })).not.toBe(logicalInvocationId(effect));
  });

  it('does not run its parts together', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (a, b) => {
        fc.pre(!`${a}${b}`.includes('\0'));
        const one = logicalInvocationId({ ...effect, runId: a + b, nodeId: 'n' });
        const two = logicalInvocationId({ ...effect, runId: a, nodeId: `${b}n` });
        expect(one).not.toBe(two);
      }),
    );
  });
});

describe('an effect', () => {
  const ongoing = new AbortController().signal;
  const effect = { tenant: 'alpha', runId: 'run-1', nodeId: 'send', ordinal: 0, providerKey: 'model' };
  let store: Store;
  beforeAll(async () => {
    store = await openInMemory({ clock: realClock, migrations: CORE_TABLES });
    await store.commit([
      addWork({ workId: 'run-1', kind: 'run', tenant: 'alpha', dueAt: null, owner: 'host-a' }),
      addWork({ workId: 'run-2', kind: 'run', tenant: 'alpha', dueAt: null, owner: 'host-a' }),
    ]);
  });
  afterAll(async () => {
    await store.close();
  });

  it.each([
    ['another host', { workId: 'run-1', owner: 'host-b', epoch: FIRST_EPOCH }],
    ['an earlier claim', { workId: 'run-1', owner: 'host-a', epoch: FIRST_EPOCH - 1 }],
    ['nobody', { workId: 'run-gone', owner: 'host-a', epoch: FIRST_EPOCH }],
  ])('is not begun under the lease of %s', async (_whose, lease) => {
    let fired = 0;
    const attempt = performOnce({ store, lease }, effect, { signal: ongoing, fire: async () => ++fired });
    await expect(attempt).rejects.toBeInstanceOf(LeaseLost);
    expect(fired).toBe(0);
    expect(await store.read(findEffect('alpha', logicalInvocationId(effect)))).toEqual([]);
  });

  it('is performed once under the lease that holds', async () => {
    const lease = { workId: 'run-2', owner: 'host-a', epoch: FIRST_EPOCH };
    let fired = 0;
    const attempt = () =>
      performOnce(
        { store, lease },
        { ...effect, runId: 'run-2' },
        { signal: ongoing, fire: async () => ({ count: ++fired }) },
      );
    expect([await attempt(), await attempt()]).toEqual([{ count: 1 }, { count: 1 }]);
  });

  it('is settled by a failure that no retry helps, unless the attempt was aborted before', async () => {
    const lease = { workId: 'run-2', owner: 'host-a', epoch: FIRST_EPOCH };
    const failing = async (ordinal: number, isAborted: boolean) => {
      const attempt = new AbortController();
      const fire = async () => {
        if (isAborted) attempt.abort();
        throw new NodeFailure({ code: 'cancelled', message: 'It ended.', retryable: false });
      };
      const failed = performOnce({ store, lease }, { ...effect, ordinal }, { signal: attempt.signal, fire });
      await expect(failed).rejects.toThrow('It ended.');
      return performOnce({ store, lease }, { ...effect, ordinal }, { signal: ongoing, fire: async () => 'sent' });
    };
    await expect(failing(7, false)).rejects.toThrow('It ended.');
    expect(await failing(8, true)).toBe('sent');
  });

  it('that has happened is not repeated, even if the attempt was aborted meanwhile', async () => {
    const lease = { workId: 'run-2', owner: 'host-a', epoch: FIRST_EPOCH };
    const attempt = new AbortController();
    const perform = (result: string) => {
      const fire = async () => {
        attempt.abort();
        return result;
      };
      return performOnce({ store, lease }, { ...effect, ordinal: 9 }, { signal: attempt.signal, fire });
    };
    expect([await perform('first'), await perform('second')]).toEqual(['first', 'first']);
  });

  it('has one outcome for two attempts at once: that of the first to end', async () => {
    const lease = { workId: 'run-2', owner: 'host-a', epoch: FIRST_EPOCH };
    const perform = (ordinal: number, fire: () => Promise<string>) =>
      performOnce({ store, lease }, { ...effect, ordinal }, { signal: ongoing, fire });
    const late = async () => {
      await perform(10, async () => 'first');
      return 'second';
    };
    expect(await perform(10, late)).toBe('first');
    const failsLate = async () => {
      await perform(11, async () => 'first');
      throw new NodeFailure({ code: 'broken', message: 'It broke.', retryable: false });
    };
    expect(await perform(11, failsLate)).toBe('first');
  });
});

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logicalInvocationId } from './ledger.ts';

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

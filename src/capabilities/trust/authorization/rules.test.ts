import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../../protocol/errors.ts';
import { ROLE_SCOPES, ROLES, type Role, SCOPES, type Scope } from '../../../protocol/trust/scopes.ts';
import { callerOf, type KeyRecord, scopesOf } from './keys.ts';
import { canReplaceManager, checkGrant, checkRequest, type KeyRequest } from './rules.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

const key = (rest: Partial<KeyRecord>): KeyRecord => ({
  keyId: 'key-1',
  hash: '',
  tenant: 'alpha',
  principal: 'somebody',
  scopes: scopesOf(rest),
  isTest: false,
  ...rest,
});
const owner = callerOf(key({ role: 'owner' }));
const check = (request: Partial<KeyRequest>, caller = owner) => checkRequest(caller, { name: 'x', ...request }, NOW);

describe('a grant', () => {
  const anyKey = fc.oneof(
    fc.constantFrom(...ROLES).map((role) => key({ role })),
    fc.subarray([...SCOPES]).map((scopes) => key({ scopes })),
  );

  it('never gives a scope that the giver does not have', () => {
    fc.assert(
      fc.property(anyKey, anyKey, (giver, wanted) => {
        const isAllowed = !isRefusal(checkGrant(callerOf(giver), wanted));
        const hasAll = wanted.scopes.every((scope) => giver.scopes.includes(scope));
        if (isAllowed) expect(hasAll).toBe(true);
        else expect(checkGrant(callerOf(giver), wanted)?.details).toHaveProperty('scopeRequired');
      }),
    );
  });

  it('never gives a role that gates would not take from the giver', () => {
    fc.assert(
      fc.property(anyKey, fc.constantFrom(...ROLES), (giver, role) => {
        const isAllowed = !isRefusal(checkGrant(callerOf(giver), key({ role })));
        expect(isAllowed).toBe(giver.role !== undefined && ROLES.indexOf(giver.role) >= ROLES.indexOf(role));
      }),
    );
  });

  it('hands on by hands: whoever gets a key can give no more than its maker', () => {
    fc.assert(
      fc.property(fc.array(anyKey, { minLength: 2, maxLength: 5 }), ([first, ...rest]) => {
        const chain = [first!];
        for (const wanted of rest) {
          if (!isRefusal(checkGrant(callerOf(chain.at(-1)!), wanted))) chain.push(wanted);
        }
        for (const { scopes } of chain) {
          expect(scopes.every((scope) => first!.scopes.includes(scope))).toBe(true);
        }
      }),
    );
  });
});

describe('a request for a key', () => {
  it('may leave everything open', () => {
    expect(check({})).toBeUndefined();
  });

  it('ends in the future, if at all', () => {
    expect(check({ expiresAt: NOW + 1 })).toBeUndefined();
    for (const expiresAt of [NOW, NOW - 1, Number.NaN]) {
      expect(check({ expiresAt })).toMatchObject({ refused: 'validation_error', details: { field: 'expiresAt' } });
    }
  });

  it('cannot take a principal that the host gave to another key or to a user', () => {
    for (const principal of ['key-0mabcdefghijklmnopqrst', `user-${'ab'.repeat(16)}`]) {
      expect(check({ principal })).toMatchObject({ refused: 'validation_error', details: { field: 'principal' } });
    }
    for (const principal of ['key-holder', 'user-7', 'build:nightly']) expect(check({ principal })).toBeUndefined();
  });

  it('from a workspace is for that workspace', () => {
    const bound = callerOf(key({ role: 'owner', workspace: 'north' }));
    expect(check({ workspace: 'north' }, bound)).toBeUndefined();
    expect(check({}, bound)).toBeUndefined();
    expect(check({ workspace: 'south' }, bound)).toMatchObject({ refused: 'forbidden' });
    expect(check({ workspace: 'south' })).toBeUndefined();
  });
});

describe('standing in for a key that manages keys', () => {
  const holder = (role: Role | undefined, scopes: readonly Scope[]) => ({ role, scopes });

  it('takes an owner where an owner goes', () => {
    const leaving = key({ role: 'owner' });
    expect(canReplaceManager(holder('owner', ROLE_SCOPES.owner), leaving)).toBe(true);
    expect(canReplaceManager(holder(undefined, SCOPES), leaving)).toBe(false);
    expect(canReplaceManager(holder('reviewer', ROLE_SCOPES.reviewer), leaving)).toBe(false);
  });

  it('takes the scope where a key with scopes goes', () => {
    const leaving = key({ scopes: ['keys:manage'] });
    expect(canReplaceManager(holder(undefined, ['keys:manage']), leaving)).toBe(true);
    expect(canReplaceManager(holder('owner', ROLE_SCOPES.owner), leaving)).toBe(true);
    expect(canReplaceManager(holder('editor', ROLE_SCOPES.editor), leaving)).toBe(false);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ROLE_SCOPES, ROLES } from '../../../protocol/trust/scopes.ts';
import { type ClaimSettings, callerOfClaims } from './claims.ts';

const SETTINGS: ClaimSettings = {
  issuer: 'https://id.example.com',
  tenantClaim: 'tenant',
  roleClaim: 'role',
  groupClaim: 'groups',
  workspaceClaim: 'workspace',
};
const CLAIMS = { sub: 'ada@example.com', tenant: 'alpha', role: 'editor' };
const read = (claims: object, settings: Partial<ClaimSettings> = {}) =>
  callerOfClaims({ ...CLAIMS, ...claims }, { ...SETTINGS, ...settings });

describe('the bearer of a token', () => {
  it('is a user of the tenant, with the scopes of the role', () => {
    const principal = expect.stringMatching(/^user-[0-9a-f]{32}$/);
    expect(read({ workspace: 'north' })).toEqual({
      subject: {
        tenant: 'alpha',
        tenantName: 'alpha',
        workspace: 'north',
        principal,
        issuer: 'https://id.example.com',
        lane: 'oidc',
      },
      scopes: new Set(ROLE_SCOPES.editor),
      role: 'editor',
      claimed: { roles: new Set(['editor']), groups: new Set() },
      keyId: principal,
      isTest: false,
    });
  });

  it('has a principal that says nothing of them, always the same, and another one elsewhere', () => {
    const principal = read({})!.subject.principal;
    expect(read({ role: 'viewer', tenant: 'beta' })!.subject.principal).toBe(principal);
    expect(principal).not.toMatch(/ada|example|@/);
    expect(read({ sub: 'bob@example.com' })!.subject.principal).not.toBe(principal);
    expect(read({}, { issuer: 'https://id.example.org' })!.subject.principal).not.toBe(principal);
  });

  it.each([undefined, '', 7, null])('is nobody with the subject %j', (sub) => {
    expect(read({ sub })).toBeUndefined();
  });

  it.each([undefined, '', 7, null, ['alpha'], { name: 'alpha' }, 'alpha#test', 'al pha', 'a@b', 'x'.repeat(129)])(
    'has no place with the tenant %j',
    (tenant) => {
      expect(read({ tenant })).toBeUndefined();
    },
  );

  it.each(['', 7, null, ['north'], 'north south'])('is not let out of a workspace by naming %j', (workspace) => {
    expect(read({ workspace })).toBeUndefined();
  });
});

describe('a role in a token', () => {
  it.each([undefined, null, '', 'admin', 'Owner', 7, [], ['admin'], [['owner']], { owner: true }, 'constructor'])(
    'of %j gives nothing',
    (role) => {
      const caller = read({ role })!;
      expect(caller.role).toBeUndefined();
      expect(caller.scopes.size).toBe(0);
    },
  );

  it('is the highest of those that are known, in whatever order', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...ROLES, 'admin', 'everybody')), (groups) => {
        const expected = ROLES.findLast((role) => groups.includes(role));
        expect(read({ role: groups })!.role).toBe(expected);
        expect([...read({ role: groups })!.scopes]).toEqual(expected ? ROLE_SCOPES[expected] : []);
      }),
    );
  });

  it('is found under another name, or inside another claim', () => {
    const role = undefined;
    expect(
      read({ role, 'https://example.com/roles': ['owner'] }, { roleClaim: 'https://example.com/roles' })!.role,
    ).toBe('owner');
    expect(read({ role, realm: { roles: ['viewer'] } }, { roleClaim: 'realm.roles' })!.role).toBe('viewer');
    expect(read({ role, 'realm.roles': 'editor', realm: { roles: 'owner' } }, { roleClaim: 'realm.roles' })!.role).toBe(
      'editor',
    );
    expect(read({ role }, { roleClaim: 'constructor.name' })!.role).toBeUndefined();
  });
});

describe('groups in a token', () => {
  const groupsOf = (claims: object, settings: Partial<ClaimSettings> = {}) => [
    ...read(claims, settings)!.claimed!.groups,
  ];

  it('are the names in their claim, be it one or a list', () => {
    expect(groupsOf({ groups: ['finance', 'board'] })).toEqual(['finance', 'board']);
    expect(groupsOf({ groups: 'finance' })).toEqual(['finance']);
    expect(groupsOf({ realm: { teams: ['finance'] } }, { groupClaim: 'realm.teams' })).toEqual(['finance']);
  });

  it.each([undefined, null, 7, {}, [7, null, ['finance']], { finance: true }])('are none in %j', (groups) => {
    expect(groupsOf({ groups })).toEqual([]);
  });

  it('give no role, and roles that this host does not know are kept by name', () => {
    const caller = read({ role: ['controller'], groups: ['owner'] })!;
    expect(caller.role).toBeUndefined();
    expect(caller.scopes.size).toBe(0);
    expect(caller.claimed).toEqual({ roles: new Set(['controller']), groups: new Set(['owner']) });
  });
});

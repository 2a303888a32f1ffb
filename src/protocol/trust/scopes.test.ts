import { describe, expect, it } from 'vitest';
import { isRole, isScope, meetsRole, ROLE_SCOPES, ROLES, SCOPES } from './scopes.ts';

/** The scopes that each role adds to the one before it. */
const ADDED = {
  viewer: 'manifest:read runs:read artifacts:read prompts:read feedback:read goals:read proposals:read',
  editor:
    'runs:create runs:cancel approvals:respond webhooks:manage audit:read prompts:write feedback:write proposals:write goals:write workflows:write schedules:write',
  reviewer: 'proposals:activate packs:publish',
  owner: 'keys:manage tenant:admin workers:serve',
};

describe('roles', () => {
  it('are in this order, each with the scopes of those before it', () => {
    expect(ROLES).toEqual(Object.keys(ADDED));
    let sofar: string[] = [];
    for (const role of ROLES) {
      sofar = [...sofar, ...ADDED[role].split(' ')];
      expect(ROLE_SCOPES[role]).toEqual(sofar);
    }
  });

  it('add each scope once', () => {
    expect(new Set(SCOPES).size).toBe(SCOPES.length);
  });

  it.each(['constructor', '__proto__', 'admin', '', undefined, null, 7])('do not include %j', (value) => {
    expect(isRole(value)).toBe(false);
    expect(isScope(value)).toBe(false);
  });

  it('are met by themselves and those above them', () => {
    for (const [rank, role] of ROLES.entries()) {
      for (const [wantedRank, wanted] of ROLES.entries()) expect(meetsRole(role, wanted)).toBe(rank >= wantedRank);
      expect(meetsRole(role, 'admin')).toBe(false);
      expect(meetsRole(undefined, role)).toBe(false);
    }
  });
});

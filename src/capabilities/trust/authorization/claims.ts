import type { JWTPayload } from 'jose';
import { own, valueAt } from '../../../protocol/format/json.ts';
import { NAME } from '../../../protocol/trust/keys.ts';
import { ROLE_SCOPES, ROLES } from '../../../protocol/trust/scopes.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Caller } from '../../request.ts';
import { USER_LANE } from './keys.ts';
import type { OidcSettings } from './settings.ts';

/** The settings that say how claims are read. */
export type ClaimSettings = Pick<
  OidcSettings,
  'issuer' | 'tenantClaim' | 'roleClaim' | 'groupClaim' | 'workspaceClaim'
>;

/**
 * The caller that a verified token stands for. Undefined if it names no subject, no tenant or an invalid workspace: to
 * ignore an invalid workspace would give access to all of them.
 */
export function callerOfClaims(claims: JWTPayload, settings: ClaimSettings): Caller | undefined {
  const { issuer, tenantClaim, roleClaim, groupClaim, workspaceClaim } = settings;
  const tenant = claimOf(claims, tenantClaim);
  const workspace = claimOf(claims, workspaceClaim);
  if (typeof claims.sub !== 'string' || claims.sub === '' || !isName(tenant)) return undefined;
  if (workspace !== undefined && !isName(workspace)) return undefined;
  const principal = principalOf(issuer, claims.sub);
  const roles = namesIn(claimOf(claims, roleClaim));
  const groups = namesIn(claimOf(claims, groupClaim));
  const role = ROLES.findLast((each) => roles.includes(each));
  return {
    subject: { tenant, tenantName: tenant, workspace, principal, issuer, lane: USER_LANE },
    scopes: new Set(role === undefined ? [] : ROLE_SCOPES[role]),
    role,
    claimed: { roles: new Set(roles), groups: new Set(groups) },
    keyId: principal,
    isTest: false,
  };
}

/** An opaque id: issuers put addresses and names into `sub`, which must not get into logs. */
function principalOf(issuer: string, sub: string): string {
  return `user-${sha256Hex(`${issuer}\n${sub}`).slice(0, 32)}`;
}

/** A name with dots is a claim of that name if there is one, else a path such as `realm_access.roles`. */
function claimOf(claims: JWTPayload, name: string): unknown {
  return own(claims, name) ?? valueAt(claims, name);
}

/** A claim holds one name or a list of them; anything else in it is ignored. */
function namesIn(claim: unknown): string[] {
  const names: unknown[] = Array.isArray(claim) ? claim : [claim];
  return names.filter((name): name is string => typeof name === 'string');
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

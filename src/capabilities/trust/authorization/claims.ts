import type { JWTPayload } from 'jose';
import { own, valueAt } from '../../../protocol/format/json.ts';
import { NAME } from '../../../protocol/trust/keys.ts';
import { isRole, ROLE_SCOPES, ROLES, type Role } from '../../../protocol/trust/scopes.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Caller } from '../../request.ts';
import { USER_LANE } from './keys.ts';
import type { OidcSettings } from './settings.ts';

/** What of the settings says how claims are read. */
export type ClaimSettings = Pick<OidcSettings, 'issuer' | 'tenantClaim' | 'roleClaim' | 'workspaceClaim'>;

/**
 * Who a verified token stands for. Undefined when it names nobody, or no tenant, or a workspace that cannot be one:
 * leaving a binding out would make it wider.
 */
export function callerOfClaims(claims: JWTPayload, settings: ClaimSettings): Caller | undefined {
  const { issuer, tenantClaim, roleClaim, workspaceClaim } = settings;
  const tenant = claimOf(claims, tenantClaim);
  const workspace = claimOf(claims, workspaceClaim);
  if (typeof claims.sub !== 'string' || claims.sub === '' || !isName(tenant)) return undefined;
  if (workspace !== undefined && !isName(workspace)) return undefined;
  const principal = principalOf(issuer, claims.sub);
  const role = roleOf(claimOf(claims, roleClaim));
  return {
    subject: { tenant, tenantName: tenant, workspace, principal, issuer, lane: USER_LANE },
    scopes: new Set(role === undefined ? [] : ROLE_SCOPES[role]),
    role,
    keyId: principal,
    isTest: false,
  };
}

/** Issuers put addresses and names into `sub`; this says nothing but that it is the same person as before. */
function principalOf(issuer: string, sub: string): string {
  return `user-${sha256Hex(`${issuer}\n${sub}`).slice(0, 32)}`;
}

/** A name with dots is one claim where there is one of that name, else the way to one: `realm_access.roles`. */
function claimOf(claims: JWTPayload, name: string): unknown {
  return own(claims, name) ?? valueAt(claims, name);
}

/** The highest of the roles that are known; groups that are none do not count. */
function roleOf(claim: unknown): Role | undefined {
  const known = (Array.isArray(claim) ? claim : [claim]).filter(isRole);
  return ROLES.findLast((role) => known.includes(role));
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

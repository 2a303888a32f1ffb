import { SCOPES } from '../protocol/trust/scopes.ts';
import type { Caller } from './request.ts';
import { storageTenant } from './storage-tenant.ts';

/** Who the host is, as a caller. */
export const HOST_IDENTITY = { principal: 'host', issuer: 'urn:capstan:host', lane: 'host' } as const;

/** The host itself as a caller, on behalf of a tenant: what its operator configures needs no key. */
export function hostCaller(tenantName: string): Caller {
  const tenant = storageTenant(tenantName, false);
  const subject = { tenant, tenantName, ...HOST_IDENTITY };
  return { subject, scopes: new Set(SCOPES), keyId: 'host', isTest: false };
}

import { SCOPES } from '../protocol/trust/scopes.ts';
import type { Caller } from './request.ts';
import { storageTenant } from './storage-tenant.ts';

/** The host itself as a caller, on behalf of a tenant: what its operator configures needs no key. */
export function hostCaller(tenantName: string): Caller {
  const tenant = storageTenant(tenantName, false);
  const subject = { tenant, tenantName, principal: 'host', issuer: 'urn:capstan:host', lane: 'host' };
  return { subject, scopes: new Set(SCOPES), keyId: 'host', isTest: false };
}

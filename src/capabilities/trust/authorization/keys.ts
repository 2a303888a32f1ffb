import { randomBytes, timingSafeEqual } from 'node:crypto';
import { isRole, isScope, ROLE_SCOPES, type Role, type Scope } from '../../../protocol/trust/scopes.ts';
import { isLoopbackName, reachOf } from '../../../system/addresses.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Caller } from '../../request.ts';
import { storageTenant } from '../../storage-tenant.ts';

/** The prefix of test keys, which see only what test keys created, and may use test features. */
export const TEST_KEY_PREFIX = 'hk_test_';
const LIVE_KEY_PREFIX = 'hk_live_';
const KEY_BYTES = 24;
const SHOWN_CHARACTERS = 12;

/** The issuer of callers that use an API key. */
const ISSUER = 'urn:capstan:api-key';

/** The lane of callers that use an API key. */
export const KEY_LANE = 'api-key';
/** The lane of callers that use a token of the OIDC issuer. */
export const USER_LANE = 'oidc';

/** Whether an issuer's key set may be fetched from a URL: over HTTPS, or from this machine. */
export function isSafeSource(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  const isLocal = isLoopbackName(hostname) || reachOf(hostname.replace(/^\[|\]$/g, '')) === 'loopback';
  return protocol === 'https:' || (protocol === 'http:' && isLocal);
}

/** A key as it is configured or stored: its hash, never the key itself. */
export interface KeyRecord {
  readonly keyId: string;
  readonly hash: string;
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly principal: string;
  /** Whose key it is; several keys of one person count as one where people are counted. */
  readonly person?: string | undefined;
  /** The only pool of workers that it may serve. */
  readonly pool?: string | undefined;
  readonly role?: Role | undefined;
  readonly scopes: readonly Scope[];
  readonly isTest: boolean;
  readonly expiresAt?: number | undefined;
  readonly revokedAt?: number | undefined;
}

/** Generates a key. */
export function newKey(isTest: boolean): string {
  return (isTest ? TEST_KEY_PREFIX : LIVE_KEY_PREFIX) + randomBytes(KEY_BYTES).toString('base64url');
}

/** Keys are long and random, so one round of SHA-256 is enough to protect the stored form. */
export function hashKey(key: string): string {
  return sha256Hex(key);
}

/** Compares hashes in constant time. */
export function isSameHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** The beginning of a key, enough to recognise it by. */
export function shownPrefix(key: string): string {
  return key.slice(0, SHOWN_CHARACTERS);
}

/** The scopes of a key: its own, else those of its role, else none. */
export function scopesOf({ role, scopes }: { role?: unknown; scopes?: unknown }): readonly Scope[] {
  if (Array.isArray(scopes)) return scopes.filter(isScope);
  return isRole(role) ? ROLE_SCOPES[role] : [];
}

/** The caller that a key stands for. */
export function callerOf(key: KeyRecord): Caller {
  return {
    subject: {
      tenant: storageTenant(key.tenant, key.isTest),
      tenantName: key.tenant,
      workspace: key.workspace,
      principal: key.principal,
      person: key.person,
      issuer: ISSUER,
      lane: KEY_LANE,
    },
    scopes: new Set(key.scopes),
    role: key.role,
    pool: key.pool,
    keyId: key.keyId,
    isTest: key.isTest,
  };
}

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isRole, isScope, ROLE_SCOPES, type Role, type Scope } from '../../../protocol/trust/scopes.ts';
import { isLoopbackName, reachOf } from '../../../system/addresses.ts';
import type { Caller } from '../../request.ts';

/** Keys that begin like this are test keys: they see only what test keys made, and may use test surfaces. */
export const TEST_KEY_PREFIX = 'hk_test_';
const LIVE_KEY_PREFIX = 'hk_live_';
const KEY_BYTES = 24;
const SHOWN_CHARACTERS = 12;

export const ISSUER = 'urn:capstan:api-key';

/** How somebody got in: a program with a key, or a person with a token of the issuer. */
export const KEY_LANE = 'api-key';
export const USER_LANE = 'oidc';

/** Where an issuer's keys may come from: a place that proves who it is, or this machine itself. */
export function isSafeSource(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  const isHere = isLoopbackName(hostname) || reachOf(hostname.replace(/^\[|\]$/g, '')) === 'loopback';
  return protocol === 'https:' || (protocol === 'http:' && isHere);
}

/** A key as it is kept: never the key itself. */
export interface KeyRecord {
  readonly keyId: string;
  readonly hash: string;
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly principal: string;
  readonly role?: Role | undefined;
  readonly scopes: readonly Scope[];
  readonly isTest: boolean;
  readonly expiresAt?: number | undefined;
  readonly revokedAt?: number | undefined;
}

export function newKey(isTest: boolean): string {
  return (isTest ? TEST_KEY_PREFIX : LIVE_KEY_PREFIX) + randomBytes(KEY_BYTES).toString('base64url');
}

/** Keys are long and random, so one round of hashing is enough to make the stored form worthless to a thief. */
export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

export function isSameHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** Enough of a key to recognise it by. */
export function shownPrefix(key: string): string {
  return key.slice(0, SHOWN_CHARACTERS);
}

/** What a key may do: its own scopes, else those of its role, else nothing. */
export function scopesOf({ role, scopes }: { role?: unknown; scopes?: unknown }): readonly Scope[] {
  if (Array.isArray(scopes)) return scopes.filter(isScope);
  return isRole(role) ? ROLE_SCOPES[role] : [];
}

/** `#` is in no tenant's name, so what test keys made is a tenant of its own to every query. */
export function storageTenant(tenant: string, isTest: boolean): string {
  return isTest ? `${tenant}#test` : tenant;
}

export function callerOf(key: KeyRecord): Caller {
  return {
    subject: {
      tenant: storageTenant(key.tenant, key.isTest),
      tenantName: key.tenant,
      workspace: key.workspace,
      principal: key.principal,
      issuer: ISSUER,
      lane: KEY_LANE,
    },
    scopes: new Set(key.scopes),
    role: key.role,
    keyId: key.keyId,
    isTest: key.isTest,
  };
}

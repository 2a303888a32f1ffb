import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Role, Scope } from '../../../protocol/trust/scopes.ts';
import { commitAll, UnitRefused } from '../../../runtime/command.ts';
import { keepAnswer } from '../../../store/idempotency.ts';
import type { Unit } from '../../../store/sql.ts';
import { redactText } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../audit/service.ts';
import { callerOf, hashKey, isSameHash, type KeyRecord, newKey, scopesOf, shownPrefix, USER_LANE } from './keys.ts';
import { LastUse } from './last-use.ts';
import {
  countKeys,
  endKeyIn,
  findKey,
  findKeyById,
  insertKey,
  type KeyRealm,
  type KeyRow,
  keepManager,
  keyFromRow,
  listKeys,
  revokeKey,
} from './records.ts';
import { canStandIn, checkGrant, checkRequest, type KeyRequest } from './rules.ts';
import { looksLikeToken, tokenVerifier } from './tokens.ts';

/** Hosts that start together on an empty store make one owner between them. */
const FIRST_START = 'first-start';
const FIRST_START_MS = 60_000;

export type AuthorizationService = ReturnType<typeof authorizationService>;

/** A key as those who manage keys see it. */
export interface KeptKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly role?: Role | undefined;
  readonly scopes: readonly Scope[];
  readonly createdAt: number;
  readonly expiresAt?: number | undefined;
  readonly lastUsedAt?: number | undefined;
  /** May lie ahead: a key that was rotated stays good for a while. */
  readonly revokedAt?: number | undefined;
}

/** The only place where the key itself can ever be seen. */
export interface IssuedKey extends KeptKey {
  readonly key: string;
}

/** What stands behind `Bearer`, and its hash. */
export interface Credential {
  readonly text: string;
  readonly hash: string;
}

type Also<T> = (outcome: T) => Unit;
/** A row with the store's time, by which it is judged. */
type TimedRow = KeyRow & { readonly now: number };

export function authorizationService({ runtime, settings }: Host, { audit }: { readonly audit: AuditService }) {
  const { store, clock, ids, log } = runtime;
  const configured = new Map(settings.configuredKeys.map((key) => [key.hash, key]));
  const verifyToken = settings.oidc && tokenVerifier(settings.oidc, runtime);
  const lastUse = new LastUse(store, log);

  return {
    /** Who a credential stands for. What is wrong with it is told only in the code, and never repeats it. */
    async authenticate({ text, hash }: Credential): Promise<Caller | Refusal> {
      const known = configured.get(hash);
      if (known) return admit(known, hash, clock.now());
      if (verifyToken && looksLikeToken(text)) return verifyToken(text);
      const [row] = await store.read<TimedRow>(findKey(hash));
      if (!row) return UNAUTHENTICATED;
      const caller = admit(keyFromRow(row), hash, row.now);
      if ('subject' in caller) lastUse.note(row, row.now);
      return caller;
    },

    async hasKeys(): Promise<boolean> {
      const [row] = await store.read<{ count: number }>(countKeys());
      return configured.size > 0 || Number(row?.count ?? 0) > 0;
    },

    /** The key that a first start makes; undefined where another host that starts at the same time was quicker. */
    async createOwner(tenant: string, name: string): Promise<string | undefined> {
      const { row, made } = make({ tenant, isTest: false }, { name, role: 'owner', principal: 'owner' });
      const record = audit.record({
        tenant,
        actor: 'host',
        action: 'key.created',
        target: row.key_id,
        details: rightsOf(row),
      });
      const once = keepAnswer({ record_key: FIRST_START, digest: '', status: 0, body: '' }, FIRST_START_MS);
      const { committed } = await store.commit([once, insertKey(row), ...record]);
      return committed ? made.key : undefined;
    },

    async list(caller: Caller, before: string | undefined, limit: number): Promise<KeptKey[]> {
      const rows = await store.read<KeyRow>(listKeys(realmOf(caller), before, limit));
      return rows.map(shown);
    },

    async create(caller: Caller, request: KeyRequest, also: Also<IssuedKey>): Promise<IssuedKey | Refusal> {
      const refusal = checkRequest(caller, request, clock.now());
      if (refusal) return refusal;
      const { row, made } = make(realmOf(caller), request);
      const created = recordOf(caller, 'key.created', row.key_id, rightsOf(row));
      await commitAll(store, [insertKey(row), ...created, ...also(made)]);
      return made;
    },

    /** A new key for the same principal, with the same rights; the old one stays good for a while. */
    async rotate(caller: Caller, keyId: string, graceMs: number, also: Also<IssuedKey>): Promise<IssuedKey | Refusal> {
      const realm = realmOf(caller);
      const [old] = await store.read<TimedRow>(findKeyById(realm, keyId));
      if (!old) return NOT_FOUND;
      const record = keyFromRow(old);
      const refusal = checkGrant(caller, record) ?? (isOver(record, old.now) ? OVER : undefined);
      if (refusal) return refusal;
      const { name, tenant, principal } = old;
      const { role, scopes, workspace, expiresAt, isTest } = record;
      const rights = role === undefined ? { scopes } : { role };
      const { row, made } = make({ tenant, isTest }, { name, principal, workspace, expiresAt, ...rights });
      const rotated = [
        ...recordOf(caller, 'key.rotated', keyId, { newKeyId: row.key_id, graceMs }),
        ...recordOf(caller, 'key.created', row.key_id, rightsOf(row)),
      ];
      const broken = await tryCommit([endKeyIn(realm, keyId, graceMs), insertKey(row), ...rotated, ...also(made)]);
      return broken ? OVER : made;
    },

    /** Holds from the next request on, wherever it is answered. A key that is over stays as it is. */
    async revoke(caller: Caller, keyId: string, also: () => Unit): Promise<Refusal | undefined> {
      const realm = realmOf(caller);
      const [row] = await store.read<TimedRow>(findKeyById(realm, keyId));
      if (!row) return NOT_FOUND;
      const record = keyFromRow(row);
      const isLast = !isOver(record, row.now) && canStandIn(record, record) && !staysManaged(caller, record);
      const guard = isLast ? [keepManager(realm, { keyId, isOwner: record.role === 'owner' })] : [];
      const revoked = recordOf(caller, 'key.revoked', keyId);
      const broken = await tryCommit([...guard, revokeKey(realm, keyId), ...revoked, ...also()]);
      return broken === 'manager' ? LAST_MANAGER : undefined;
    },
  };

  function admit(known: KeyRecord, hash: string, now: number): Caller | Refusal {
    if (!isSameHash(known.hash, hash)) return UNAUTHENTICATED;
    if (isRevoked(known, now)) return refuse('key_revoked', 'This key was revoked.');
    if (isOver(known, now)) return refuse('key_expired', 'This key has expired.');
    return callerOf(known);
  }

  function make(realm: KeyRealm, request: KeyRequest): { row: KeyRow; made: IssuedKey } {
    const { role, workspace = realm.workspace, expiresAt } = request;
    const key = newKey(realm.isTest);
    const keyId = ids.next('key-');
    const row: KeyRow = {
      key_id: keyId,
      hash: hashKey(key),
      name: redactText(request.name),
      prefix: shownPrefix(key),
      tenant: realm.tenant,
      workspace: workspace ?? null,
      principal: request.principal ?? keyId,
      role: role ?? null,
      scopes: JSON.stringify(scopesOf(request)),
      is_test: realm.isTest ? 1 : 0,
      created_at: clock.now(),
      expires_at: expiresAt ?? null,
      revoked_at: null,
      last_used_at: null,
    };
    return { row, made: { ...shown(row), key } };
  }

  function recordOf({ subject }: Caller, action: AuditAction, target: string, details?: JsonObject): Unit {
    const { tenant, workspace, principal } = subject;
    return audit.record({ tenant, workspace, actor: principal, action, target, ...(details ? { details } : {}) });
  }

  /** Whether somebody can manage keys whatever becomes of those in the store. */
  function staysManaged(caller: Caller, key: KeyRecord): boolean {
    const { tenantName, workspace, lane } = caller.subject;
    if (lane === USER_LANE && canStandIn(caller, key)) return true;
    return settings.configuredKeys.some(
      (other) =>
        other.tenant === tenantName &&
        other.isTest === caller.isTest &&
        (other.workspace === undefined || other.workspace === workspace) &&
        canStandIn(other, key),
    );
  }

  /** The promise that did not hold; undefined when all is written. What concerns a retry is for whoever asked. */
  async function tryCommit(unit: Unit): Promise<string | undefined> {
    try {
      await commitAll(store, unit);
      return undefined;
    } catch (error) {
      if (error instanceof UnitRefused && error.broke !== 'idempotency') return error.broke;
      throw error;
    }
  }
}

export const UNAUTHENTICATED = refuse('unauthenticated', 'Send a valid key as `Authorization: Bearer <key>`.');
const OVER = refuse('conflict', 'This key is over, or was rotated already.');
const LAST_MANAGER = refuse(
  'conflict',
  'Nobody could manage keys any more. Make another key with the same rights first, or rotate this one.',
);

function realmOf({ subject, isTest }: Caller): KeyRealm {
  return { tenant: subject.tenantName, isTest, workspace: subject.workspace };
}

/** What a key was made for, without anything of the key. */
function rightsOf({ principal, role, scopes }: KeyRow): JsonObject {
  return role === null ? { principal, scopes: JSON.parse(scopes) } : { principal, role };
}

function isRevoked({ revokedAt }: KeyRecord, now: number): boolean {
  return revokedAt !== undefined && revokedAt <= now;
}

function isOver(key: KeyRecord, now: number): boolean {
  return isRevoked(key, now) || (key.expiresAt !== undefined && key.expiresAt <= now);
}

function shown(row: KeyRow): KeptKey {
  const { role, scopes, expiresAt, revokedAt } = keyFromRow(row);
  return {
    id: row.key_id,
    name: row.name,
    prefix: row.prefix,
    role,
    scopes,
    createdAt: row.created_at,
    expiresAt,
    lastUsedAt: row.last_used_at ?? undefined,
    revokedAt,
  };
}

import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { NamedPrincipal } from '../../../protocol/trust/keys.ts';
import type { Role, Scope } from '../../../protocol/trust/scopes.ts';
import { and, type Change, changeOf, perform, unchanged } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { saveIdempotencyRecord } from '../../../store/idempotency.ts';
import type { Write } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy, HOST_ACTOR } from '../audit/door.ts';
import { Authenticator, type AuthenticatorRuntime } from './authenticator.ts';
import type { Authorization, Credential, SignIn } from './door.ts';
import { Issuer } from './issuer.ts';
import { hashKey, type KeyRecord, newKey, scopesOf, shownPrefix, USER_LANE } from './keys.ts';
import {
  countKeys,
  countKeysOf,
  endKeyIn,
  findKeyById,
  insertKey,
  type KeyRealm,
  type KeyRow,
  keepManager,
  keyFromRow,
  listKeys,
  listNames,
  type NamedKeyRow,
  revokeKey,
  type TimedKeyRow,
} from './records.ts';
import {
  canReplaceManager,
  checkGrant,
  checkRequest,
  isOver,
  isRevoked,
  type KeyRequest,
  PRINCIPAL_IN_USE,
} from './rules.ts';
import type { OidcSettings } from './settings.ts';
import { OidcSignIn, type SignInSettings } from './sign-in.ts';
import { tokenVerifier } from './tokens.ts';

/** Hosts that start together on an empty store create one owner between them. */
const FIRST_START = 'first-start';
const FIRST_START_MS = 60_000;
/** Longer than it takes from the look for other keys of a principal to the commit of a new one. */
const CLAIM_MS = 5_000;
const CREATED_ELSEWHERE = refuse('conflict', 'Another host has created the first key.');

const OVER = refuse('conflict', 'This key has expired, or was revoked or rotated already. Create a new key.');
const LAST_MANAGER = refuse(
  'conflict',
  'No other key could manage keys any more. Create another key with the same rights first, or rotate this one.',
);

/** A key as those who manage keys see it: without the key itself. */
export interface StoredKey {
  readonly id: string;
  readonly name: string;
  readonly person?: string;
  readonly pool?: string;
  readonly prefix: string;
  readonly role?: Role | undefined;
  readonly scopes: readonly Scope[];
  readonly createdAt: number;
  readonly expiresAt?: number | undefined;
  readonly lastUsedAt?: number | undefined;
  /** May be in the future: a rotated key stays valid for a grace period. */
  readonly revokedAt?: number | undefined;
}

/** A new key; the key itself is shown here and never again. */
export interface IssuedKey extends StoredKey {
  readonly key: string;
}

/** The settings that decide who gets in. */
interface AuthorizationOptions {
  readonly apiKeys: readonly KeyRecord[];
  readonly oidc?: OidcSettings | undefined;
}

type AuthorizationRuntime = AuthenticatorRuntime & Pick<Runtime, 'ids' | 'mutex'>;

/** A key that is not stored yet: its row, and what its owner is shown once. */
interface NewKey {
  readonly row: KeyRow;
  readonly issued: IssuedKey;
}

/** Authenticates callers, and creates, rotates and revokes API keys. */
export class AuthorizationService implements Authorization {
  readonly #runtime: AuthorizationRuntime;
  readonly #audit: Pick<Audit, 'entry'>;
  readonly #configured: readonly KeyRecord[];
  readonly #authenticator: Authenticator;
  readonly signIn: SignIn | undefined;

  constructor(runtime: AuthorizationRuntime, audit: Pick<Audit, 'entry'>, options: AuthorizationOptions) {
    this.#runtime = runtime;
    this.#audit = audit;
    this.#configured = options.apiKeys;
    const { apiKeys, oidc } = options;
    // One for both, so that the issuer is asked once.
    const issuer = oidc && new Issuer(oidc, runtime);
    this.#authenticator = new Authenticator(runtime, apiKeys, issuer && tokenVerifier(oidc, runtime, issuer));
    this.signIn = issuer && hasClient(oidc) ? new OidcSignIn(oidc, runtime, issuer) : undefined;
  }

  authenticate(credential: Credential): Promise<Caller | Refusal> {
    return this.#authenticator.authenticate(credential);
  }

  async hasKeys(): Promise<boolean> {
    const [row] = await this.#runtime.store.read<{ count: number }>(countKeys());
    return this.#configured.length > 0 || Number(row?.count ?? 0) > 0;
  }

  async createOwner(tenant: string, name: string): Promise<string | undefined> {
    const once = saveIdempotencyRecord({ record_key: FIRST_START, digest: '', status: 0, body: '' }, FIRST_START_MS);
    const claim = changeOf(undefined, [once], { refusals: { idempotency: CREATED_ELSEWHERE } });
    const outcome = await perform(this.#runtime, async () => and(this.#owner(tenant, name, 'key.created'), claim));
    return isRefusal(outcome) ? undefined : outcome;
  }

  async recoverOwner(tenant: string, name: string): Promise<string> {
    const outcome = await perform(this.#runtime, async () => this.#owner(tenant, name, 'key.recovered'));
    if (isRefusal(outcome)) throw new Error(outcome.message);
    return outcome;
  }

  /** A key that the host creates by itself, for the owner of a tenant. */
  #owner(tenant: string, name: string, action: 'key.created' | 'key.recovered'): Change<string> {
    const { row, issued } = this.#newKey({ tenant, isTest: false }, { name, role: 'owner', principal: 'owner' });
    const entry = { tenant, actor: HOST_ACTOR, action, target: row.key_id, details: rightsOf(row) };
    return and(changeOf(issued.key, [insertKey(row)]), this.#audit.entry(entry));
  }

  /** The keys that a caller may manage, newest first. */
  async list(caller: Caller, before: string | undefined, limit: number): Promise<StoredKey[]> {
    const rows = await this.#runtime.store.read<KeyRow>(listKeys(realmOf(caller), before, limit));
    return rows.map(storedKey);
  }

  /** What keys say about principals of the caller's tenant, for people to read; also if the keys are revoked. */
  async names(caller: Caller, principals: readonly string[]): Promise<NamedPrincipal[]> {
    const realm = realmOf(caller);
    const configured = this.#configured.filter(
      ({ tenant, isTest, workspace = realm.workspace, principal }) =>
        tenant === realm.tenant &&
        isTest === realm.isTest &&
        (realm.workspace === undefined || workspace === realm.workspace) &&
        principals.includes(principal),
    );
    const rows = await this.#runtime.store.read<NamedKeyRow>(listNames(realm, principals));
    const named = [
      ...configured.map(({ principal, person }) => ({ principal, ...defined({ person }) })),
      ...rows.map(({ principal, name, person }) => ({ principal, name, ...(person === null ? {} : { person }) })),
    ];
    return [...new Map(named.map((each) => [each.principal, each])).values()];
  }

  async create(caller: Caller, request: KeyRequest): Promise<Change<IssuedKey> | Refusal> {
    const refusal = checkRequest(caller, request, this.#runtime.clock.now());
    if (refusal) return refusal;
    const realm = realmOf(caller);
    const { principal } = request;
    const made = this.#newKey(realm, request);
    if (principal === undefined) return this.#issue(caller, made);
    if (await this.#isInUse(realm, principal)) return PRINCIPAL_IN_USE;
    const claim = changeOf(undefined, [claimPrincipal(realm, principal)], {
      refusals: { principal: PRINCIPAL_IN_USE },
    });
    return and(this.#issue(caller, made), claim);
  }

  /** Whether a key that is configured or stored acts as this principal. */
  async #isInUse(realm: KeyRealm, principal: string): Promise<boolean> {
    const isConfigured = this.#configured.some(
      (key) => key.tenant === realm.tenant && key.isTest === realm.isTest && key.principal === principal,
    );
    if (isConfigured) return true;
    const [row] = await this.#runtime.store.read<{ count: number }>(countKeysOf(realm, principal));
    return Number(row?.count ?? 0) > 0;
  }

  /** Issues a new key for the same principal with the same rights; the old one stays valid for a grace period. */
  async rotate(caller: Caller, keyId: string, graceMs: number): Promise<Change<IssuedKey> | Refusal> {
    const realm = realmOf(caller);
    const old = await this.#find(realm, keyId);
    if (!old) return NOT_FOUND;
    const record = keyFromRow(old);
    const refusal = checkGrant(caller, record) ?? (isOver(record, old.now) ? OVER : undefined);
    if (refusal) return refusal;
    const { name, tenant, principal } = old;
    const { role, scopes, workspace, expiresAt, isTest, person, pool } = record;
    const rights = role === undefined ? { scopes } : { role };
    const made = this.#newKey({ tenant, isTest }, { name, principal, person, pool, workspace, expiresAt, ...rights });
    const end = changeOf(undefined, [endKeyIn(realm, keyId, graceMs)], { refusals: { key: OVER } });
    const details = { newKeyId: made.issued.id, graceMs };
    // The audit log has entries in the order in which they are made: the rotation before the key that it creates.
    const rotated = entryBy(this.#audit, caller.subject, 'key.rotated', keyId, details);
    return and(this.#issue(caller, made), end, rotated);
  }

  /** Holds from the next request on, on every host. A key that was revoked before stays as it is. */
  async revoke(caller: Caller, keyId: string): Promise<Change | Refusal> {
    const realm = realmOf(caller);
    const row = await this.#find(realm, keyId);
    if (!row) return NOT_FOUND;
    const record = keyFromRow(row);
    if (isRevoked(record, row.now)) return unchanged(undefined);
    const isManager = !isOver(record, row.now) && canReplaceManager(record, record);
    const guard =
      isManager && !this.#isManagedWithout(caller, record)
        ? [keepManager(realm, { keyId, isOwner: record.role === 'owner' })]
        : [];
    const writes = [...guard, revokeKey(realm, keyId)];
    const announce = [this.#authenticator.forgetKeys];
    const revoke = changeOf(undefined, writes, { announce, retryOn: ['key'], refusals: { manager: LAST_MANAGER } });
    return and(revoke, entryBy(this.#audit, caller.subject, 'key.revoked', keyId));
  }

  async #find(realm: KeyRealm, keyId: string): Promise<TimedKeyRow | undefined> {
    const [row] = await this.#runtime.store.read<TimedKeyRow>(findKeyById(realm, keyId));
    return row;
  }

  #issue({ subject }: Caller, { row, issued }: NewKey): Change<IssuedKey> {
    return and(
      changeOf(issued, [insertKey(row)]),
      entryBy(this.#audit, subject, 'key.created', row.key_id, rightsOf(row)),
    );
  }

  #newKey(realm: KeyRealm, request: KeyRequest): NewKey {
    const { role, workspace = realm.workspace, expiresAt } = request;
    const key = newKey(realm.isTest);
    const keyId = this.#runtime.ids.next('key-');
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
      created_at: this.#runtime.clock.now(),
      expires_at: expiresAt ?? null,
      revoked_at: null,
      last_used_at: null,
      person: request.person ?? null,
      pool: request.pool ?? null,
    };
    return { row, issued: { ...storedKey(row), key } };
  }

  /** Whether keys can be managed even without the stored ones: by this user's token, or with a configured key. */
  #isManagedWithout(caller: Caller, key: KeyRecord): boolean {
    const { tenantName, workspace, lane } = caller.subject;
    if (lane === USER_LANE && canReplaceManager(caller, key)) return true;
    return this.#configured.some(
      (other) =>
        other.tenant === tenantName &&
        other.isTest === caller.isTest &&
        (other.workspace === undefined || other.workspace === workspace) &&
        canReplaceManager(other, key),
    );
  }
}

/** Of two keys that are created for one principal at the same time, on whatever hosts, one is refused. */
function claimPrincipal({ tenant, isTest }: KeyRealm, principal: string): Write {
  const record_key = sha256Hex(JSON.stringify(['principal', tenant, isTest, principal]));
  const once = saveIdempotencyRecord({ record_key, digest: '', status: 0, body: '' }, CLAIM_MS);
  return { ...once, expectation: 'principal' };
}

function realmOf({ subject, isTest }: Caller): KeyRealm {
  return { tenant: subject.tenantName, isTest, workspace: subject.workspace };
}

/** The rights of a key as the audit log records them, without any part of the key. */
function rightsOf({ principal, person, pool, role, scopes }: KeyRow): JsonObject {
  const who = { principal, ...(person === null ? {} : { person }), ...(pool === null ? {} : { pool }) };
  return role === null ? { ...who, scopes: JSON.parse(scopes) } : { ...who, role };
}

function storedKey(row: KeyRow): StoredKey {
  const { role, scopes, expiresAt, revokedAt } = keyFromRow(row);
  return {
    id: row.key_id,
    name: row.name,
    ...(row.person === null ? {} : { person: row.person }),
    ...(row.pool === null ? {} : { pool: row.pool }),
    prefix: row.prefix,
    role,
    scopes,
    createdAt: row.created_at,
    expiresAt,
    lastUsedAt: row.last_used_at ?? undefined,
    revokedAt,
  };
}

function hasClient(settings: OidcSettings): settings is SignInSettings {
  return settings.signIn !== undefined;
}

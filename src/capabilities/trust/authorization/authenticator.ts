import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Caller } from '../../request.ts';
import { type Credential, UNAUTHENTICATED } from './door.ts';
import { callerOf, isSameHash, type KeyRecord } from './keys.ts';
import { LastUse } from './last-use.ts';
import { findKey, keyFromRow, type TimedKeyRow } from './records.ts';
import { isOver, isRevoked } from './rules.ts';
import { looksLikeToken } from './tokens.ts';

/** What the authenticator uses of the runtime. */
export type AuthenticatorRuntime = Pick<Runtime, 'store' | 'clock' | 'log' | 'egress'>;

/** Finds the caller behind a credential: a configured key, a token of the issuer, or a stored key, in this order. */
export class Authenticator {
  readonly #runtime: AuthenticatorRuntime;
  readonly #configured: ReadonlyMap<string, { readonly key: KeyRecord; readonly caller: Caller }>;
  readonly #verifyToken: ((token: string) => Promise<Caller | Refusal>) | undefined;
  readonly #lastUse: LastUse;

  constructor(
    runtime: AuthenticatorRuntime,
    apiKeys: readonly KeyRecord[],
    verifyToken?: (token: string) => Promise<Caller | Refusal>,
  ) {
    this.#runtime = runtime;
    this.#configured = new Map(apiKeys.map((key) => [key.hash, { key, caller: callerOf(key) }]));
    this.#verifyToken = verifyToken;
    this.#lastUse = new LastUse(runtime.store, runtime.log);
  }

  async authenticate({ text, hash }: Credential): Promise<Caller | Refusal> {
    const { store, clock } = this.#runtime;
    const configured = this.#configured.get(hash);
    if (configured) return refusalOf(configured.key, hash, clock.now()) ?? configured.caller;
    if (this.#verifyToken && looksLikeToken(text)) return this.#verifyToken(text);
    const [row] = await store.read<TimedKeyRow>(findKey(hash));
    if (!row) return UNAUTHENTICATED;
    const key = keyFromRow(row);
    const refusal = refusalOf(key, hash, row.now);
    if (refusal) return refusal;
    this.#lastUse.note(row, row.now);
    return callerOf(key);
  }
}

function refusalOf(key: KeyRecord, hash: string, now: number): Refusal | undefined {
  if (!isSameHash(key.hash, hash)) return UNAUTHENTICATED;
  if (isRevoked(key, now)) return refuse('key_revoked', 'This key was revoked.');
  return isOver(key, now) ? refuse('key_expired', 'This key has expired.') : undefined;
}

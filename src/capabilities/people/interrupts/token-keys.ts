import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Unit } from '../../../store/sql.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import { insertTokenKey, listTokenKeys, retireTokenKeys, type TokenKeyRow } from './records.ts';
import { newTokenSecret, readToken, type TokenClaims, type TokenKey } from './tokens.ts';

const PURPOSE = 'interrupt tokens';
const DAY_MS = 24 * 60 * 60 * 1_000;
/** A key signs for a month and verifies for two more, so no token outlives the key that signed it. */
const SIGNS_FOR_MS = 30 * DAY_MS;
const VERIFIES_FOR_MS = 90 * DAY_MS;
/** Cached keys are read again after this time, because another host may have added one. */
const CACHE_MS = 60_000;
/** A token with an unknown signature causes a read at most this often, so that forged tokens cannot cause a flood. */
const CACHE_MIN_MS = 1_000;

/** Secrets are base64url, which has no dots; sealed ones have one. */
const SEALED_MARK = '.';

interface DatedKey extends TokenKey {
  readonly createdAt: number;
}

/**
 * The keys that sign tokens. They are in the store, so a token is valid after a restart and on every host. Under the
 * operator's secret they are sealed, and then keys that are not sealed do not count: somebody with access to the
 * database could have written them.
 */
export class TokenKeys {
  readonly #runtime: Pick<Runtime, 'store' | 'clock' | 'ids'>;
  readonly #sealing: SealingKey | undefined;
  #cached: { readonly keys: readonly DatedKey[]; readonly at: number } | undefined;

  constructor(runtime: Pick<Runtime, 'store' | 'clock' | 'ids'>, secret: string | undefined) {
    this.#runtime = runtime;
    this.#sealing = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
  }

  /** The claims of a token that one of the keys signed. An unknown signature may be of a key newer than the cache. */
  async read(token: string): Promise<TokenClaims | undefined> {
    const cached = await this.#keysNotOlderThan(CACHE_MS);
    return readToken(token, cached) ?? readToken(token, await this.#keysNotOlderThan(CACHE_MIN_MS));
  }

  /** The newest key. The first one is created when it is first needed. */
  async signing(): Promise<TokenKey> {
    const [newest] = await this.#keysNotOlderThan(CACHE_MS);
    if (newest) return newest;
    await commitOrThrow(this.#runtime.store, [insertTokenKey(this.#newKey())]);
    return (await this.#readKeys())[0]!;
  }

  /** The writes that add a key when the newest is old enough, and delete keys that verify no more. */
  async rotation(): Promise<Unit> {
    const now = this.#runtime.clock.now();
    const [newest] = await this.#readKeys();
    const isDue = newest !== undefined && now - newest.createdAt > SIGNS_FOR_MS;
    return [...(isDue ? [insertTokenKey(this.#newKey())] : []), retireTokenKeys(now - VERIFIES_FOR_MS)];
  }

  /** The keys, newest first, from the cache unless it is older than that. */
  async #keysNotOlderThan(ageMs: number): Promise<readonly DatedKey[]> {
    const isFresh = this.#cached && this.#runtime.clock.now() - this.#cached.at < ageMs;
    return isFresh ? this.#cached!.keys : this.#readKeys();
  }

  async #readKeys(): Promise<readonly DatedKey[]> {
    const at = this.#runtime.clock.now();
    const rows = await this.#runtime.store.read<TokenKeyRow>(listTokenKeys());
    const keys = rows.flatMap((row) => this.#keyOf(row) ?? []);
    this.#cached = { keys, at };
    return keys;
  }

  /** Undefined if it was sealed under another secret, or was not sealed though there is one. */
  #keyOf({ key_id: keyId, secret: stored, created_at: createdAt }: TokenKeyRow): DatedKey | undefined {
    const isSealed = stored.includes(SEALED_MARK);
    const secret = this.#sealing ? unseal(stored, [this.#sealing], keyId) : stored;
    return secret === undefined || (isSealed && !this.#sealing) ? undefined : { keyId, secret, createdAt };
  }

  #newKey(): TokenKeyRow {
    const keyId = this.#runtime.ids.next('tk-');
    const secret = newTokenSecret();
    return {
      key_id: keyId,
      secret: this.#sealing ? seal(secret, this.#sealing, keyId) : secret,
      created_at: this.#runtime.clock.now(),
    };
  }
}

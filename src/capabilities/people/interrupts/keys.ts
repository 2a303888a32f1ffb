import type { Runtime } from '../../../runtime/runtime.ts';
import type { Unit } from '../../../store/sql.ts';
import { insertTokenKey, listTokenKeys, retireTokenKeys, type TokenKeyRow } from './records.ts';
import { newTokenSecret, readToken, type TokenClaims, type TokenKey } from './tokens.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A key signs for a month and is believed for two more, so no token outlives the key that signed it. */
const SIGNS_FOR_MS = 30 * DAY_MS;
const BELIEVED_FOR_MS = 90 * DAY_MS;
/** Other hosts may have made a key since we looked. */
const LOOK_AGAIN_MS = 60_000;
/** Made-up tokens must not make us look all the time. */
const LOOK_AT_MOST_EVERY_MS = 1_000;

interface KnownKey extends TokenKey {
  readonly createdAt: number;
}

/** The keys of the installation, kept in the store so that tokens outlive a restart and work on every host. */
export class TokenKeys {
  readonly #runtime: Runtime;
  #known: { readonly keys: readonly KnownKey[]; readonly at: number } | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The claims of a token that one of the keys signed; what we cannot read may be signed by a key that is newer. */
  async read(token: string): Promise<TokenClaims | undefined> {
    const known = await this.#atMost(LOOK_AGAIN_MS);
    return readToken(token, known) ?? readToken(token, await this.#atMost(LOOK_AT_MOST_EVERY_MS));
  }

  /** The newest key; the first one is made when it is first needed. */
  async signing(): Promise<TokenKey> {
    const [newest] = await this.#atMost(LOOK_AGAIN_MS);
    if (newest) return newest;
    await this.#runtime.store.commit([insertTokenKey(this.#newKey())]);
    return (await this.#look())[0]!;
  }

  /** What has to be written to keep keys fresh. */
  async rotation(): Promise<Unit> {
    const now = this.#runtime.clock.now();
    const [newest] = await this.#look();
    const isDue = newest !== undefined && now - newest.createdAt > SIGNS_FOR_MS;
    return [...(isDue ? [insertTokenKey(this.#newKey())] : []), retireTokenKeys(now - BELIEVED_FOR_MS)];
  }

  /** The keys, newest first, as they were at most so long ago. */
  async #atMost(ageMs: number): Promise<readonly KnownKey[]> {
    const isFresh = this.#known && this.#runtime.clock.now() - this.#known.at < ageMs;
    return isFresh ? this.#known!.keys : this.#look();
  }

  async #look(): Promise<readonly KnownKey[]> {
    const at = this.#runtime.clock.now();
    const rows = await this.#runtime.store.read<TokenKeyRow>(listTokenKeys());
    const keys = rows.map(({ key_id, secret, created_at }) => ({ keyId: key_id, secret, createdAt: created_at }));
    this.#known = { keys, at };
    return keys;
  }

  #newKey(): TokenKeyRow {
    return { key_id: this.#runtime.ids.next('tk-'), secret: newTokenSecret(), created_at: this.#runtime.clock.now() };
  }
}

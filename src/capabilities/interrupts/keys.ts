import type { Runtime } from '../../runtime/runtime.ts';
import type { Unit } from '../../store/sql.ts';
import { insertTokenKey, listTokenKeys, retireTokenKeys, type TokenKeyRow } from './records.ts';
import { newTokenSecret, type TokenKey } from './tokens.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A key signs for a month and is believed for two more, so no token outlives the key that signed it. */
const SIGNS_FOR_MS = 30 * DAY_MS;
const BELIEVED_FOR_MS = 90 * DAY_MS;
/** Other hosts may have made a key since we looked. */
const LOOK_AGAIN_MS = 60_000;

/** The keys of the installation, kept in the store so that tokens outlive a restart and work on every host. */
export class TokenKeys {
  readonly #runtime: Runtime;
  #known: { readonly keys: readonly (TokenKey & { readonly createdAt: number })[]; readonly at: number } | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async all(): Promise<readonly TokenKey[]> {
    const now = this.#runtime.clock.now();
    if (!this.#known || now - this.#known.at > LOOK_AGAIN_MS || this.#known.keys.length === 0) await this.#look(now);
    return this.#known!.keys;
  }

  /** The newest key; the first one is made when it is first needed. */
  async signing(): Promise<TokenKey> {
    const [newest] = await this.all();
    if (newest) return newest;
    await this.#runtime.store.commit([insertTokenKey(this.#newKey())]);
    this.#known = undefined;
    return (await this.all())[0]!;
  }

  /** What has to be written to keep keys fresh. */
  rotation(): Unit {
    const now = this.#runtime.clock.now();
    const newest = this.#known?.keys[0];
    const isDue = newest !== undefined && now - newest.createdAt > SIGNS_FOR_MS;
    return [...(isDue ? [insertTokenKey(this.#newKey())] : []), retireTokenKeys(now - BELIEVED_FOR_MS)];
  }

  async #look(now: number): Promise<void> {
    const rows = await this.#runtime.store.read<TokenKeyRow>(listTokenKeys());
    const keys = rows.map(({ key_id, secret, created_at }) => ({ keyId: key_id, secret, createdAt: created_at }));
    this.#known = { keys, at: now };
  }

  #newKey(): TokenKeyRow {
    return { key_id: this.#runtime.ids.next('tk-'), secret: newTokenSecret(), created_at: this.#runtime.clock.now() };
  }
}

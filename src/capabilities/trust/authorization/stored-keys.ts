import type { Refusal } from '../../../protocol/errors.ts';
import { BoundedCache } from '../../../runtime/bounded-cache.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Caller } from '../../request.ts';
import { UNAUTHENTICATED } from './door.ts';
import { callerOf, type KeyRecord } from './keys.ts';
import { LastUse } from './last-use.ts';
import { findKey, keyFromRow, type TimedKeyRow } from './records.ts';
import { refusalOf } from './rules.ts';

/** How long a key is remembered before it is read again. */
const REMEMBERED_MS = 1_000;
/** Keys that are remembered. */
const REMEMBERED_MAX = 10_000;

interface RememberedKey {
  readonly key: KeyRecord;
  readonly caller: Caller;
  readonly readAt: number;
}

/**
 * Finds the callers of stored keys. On SQLite keys are remembered: only this process can change them, and to read one for
 * each request takes a fifth of the time of a short run. Where hosts share a store each request reads its key, so that a
 * revocation holds from the next request on.
 */
export class StoredKeys {
  readonly #runtime: Pick<Runtime, 'store' | 'clock'>;
  readonly #lastUse: LastUse;
  #remembered = new BoundedCache<string, RememberedKey>(REMEMBERED_MAX);

  constructor(runtime: Pick<Runtime, 'store' | 'clock' | 'log'>) {
    this.#runtime = runtime;
    this.#lastUse = new LastUse(runtime.store, runtime.log);
  }

  /** The caller that the key with this hash stands for, or why it does not stand for one now. */
  async caller(hash: string): Promise<Caller | Refusal> {
    const now = this.#runtime.clock.now();
    const known = this.#remembered.get(hash);
    if (!known || known.readAt > now || now - known.readAt >= REMEMBERED_MS) return this.#read(hash, now);
    return refusalOf(known.key, hash, now) ?? known.caller;
  }

  /** To be called when a key was revoked. A revocation that is not announced takes effect after REMEMBERED_MS. */
  forget(): void {
    this.#remembered = new BoundedCache(REMEMBERED_MAX);
  }

  async #read(hash: string, readAt: number): Promise<Caller | Refusal> {
    const { store } = this.#runtime;
    // Taken before the read: a key as it was before its revocation must not get into the cache that replaces this one.
    const remembered = this.#remembered;
    const [row] = await store.read<TimedKeyRow>(findKey(hash));
    if (!row) return UNAUTHENTICATED;
    const key = keyFromRow(row);
    const refusal = refusalOf(key, hash, row.now);
    if (refusal) return refusal;
    this.#lastUse.note(row, row.now);
    const caller = callerOf(key);
    if (!store.isShared) remembered.set(hash, { key, caller, readAt });
    return caller;
  }
}

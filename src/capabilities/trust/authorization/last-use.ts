import { commitOrThrow } from '../../../runtime/change.ts';
import type { Store } from '../../../store/store.ts';
import type { Log } from '../../../system/log.ts';
import { type KeyRow, touchKey } from './records.ts';

/** A key that is in constant use costs one write per minute. */
const EVERY_MS = 60_000;

/** Stores when keys were last used. Requests neither wait for it nor fail if it fails. */
export class LastUse {
  readonly #store: Store;
  readonly #log: Log;
  readonly #writing = new Set<string>();

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** Stores the use of a key unless a recent one is stored. */
  note({ key_id: keyId, last_used_at: last }: Pick<KeyRow, 'key_id' | 'last_used_at'>, now: number): void {
    if ((last !== null && now - last < EVERY_MS) || this.#writing.has(keyId)) return;
    this.#writing.add(keyId);
    commitOrThrow(this.#store, [touchKey(keyId, EVERY_MS)])
      .catch((error) =>
        this.#log.warn(
          { keyId, err: error },
          'the last use of a key could not be stored; the next use is stored again',
        ),
      )
      .finally(() => this.#writing.delete(keyId));
  }
}

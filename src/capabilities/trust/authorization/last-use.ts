import type { Store } from '../../../store/store.ts';
import type { Log } from '../../../system/log.ts';
import { type KeyRow, touchKey } from './records.ts';

/** A key that is in use all the time costs one write in so many milliseconds. */
const EVERY_MS = 60_000;

/** Writes down when keys were last used, beside the requests: none waits for it, none fails by it. */
export class LastUse {
  readonly #store: Store;
  readonly #log: Log;
  readonly #writing = new Set<string>();

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  note({ key_id: keyId, last_used_at: last }: Pick<KeyRow, 'key_id' | 'last_used_at'>, now: number): void {
    if ((last !== null && now - last < EVERY_MS) || this.#writing.has(keyId)) return;
    this.#writing.add(keyId);
    this.#store
      .commit([touchKey(keyId, EVERY_MS)])
      .catch((error) => this.#log.warn({ keyId, err: error }, 'the last use of a key was not written down'))
      .finally(() => this.#writing.delete(keyId));
  }
}

import { commitOrThrow } from '../../../runtime/change.ts';
import type { Store } from '../../../store/store.ts';
import { findNew, numberEntries } from './records.ts';

const BATCH = 1_000;

/** Numbers committed entries. On one host, all readers of a feed share one pass. */
export class Numbering {
  readonly #store: Store;
  readonly #passes = new Map<string, Promise<void>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Afterwards, every entry that was committed before the call has a number. */
  async numberCommitted(tenant: string): Promise<void> {
    while ((await this.#store.read(findNew(tenant))).length > 0) {
      await (this.#passes.get(tenant) ?? this.#pass(tenant));
    }
  }

  #pass(tenant: string): Promise<void> {
    const pass = commitOrThrow(this.#store, numberEntries(tenant, BATCH)).finally(() => this.#passes.delete(tenant));
    this.#passes.set(tenant, pass);
    return pass;
  }
}

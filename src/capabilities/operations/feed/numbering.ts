import type { Store } from '../../../store/store.ts';
import { findNew, numberEntries } from './records.ts';

const AT_ONCE = 1_000;

/** Numbers what has been committed. However many read a feed here, one does it for all of them at a time. */
export class Numbering {
  readonly #store: Store;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Afterwards, whatever was committed before has a number. */
  async bringUpToDate(tenant: string): Promise<void> {
    while ((await this.#store.read(findNew(tenant))).length > 0) {
      const step = this.#underWay.get(tenant) ?? this.#step(tenant);
      await step;
    }
  }

  #step(tenant: string): Promise<void> {
    const step = this.#store
      .commit(numberEntries(tenant, AT_ONCE))
      .then(() => {})
      .finally(() => this.#underWay.delete(tenant));
    this.#underWay.set(tenant, step);
    return step;
  }
}

import type { Statement } from '../store/sql.ts';
import type { HintListener } from './hub.ts';
import type { Runtime } from './runtime.ts';

/** Which tenants are meant, and how hosts tell each other of new ones. */
interface KnownTenantsOptions {
  /** Finds the column `tenant` of all of them. */
  readonly list: () => Statement;
  /** Topic of the hint that there is another one. */
  readonly topic: string;
}

/**
 * The tenants that have something which few have, such as webhooks. On a store with one host the cache is complete and
 * saves statements; elsewhere it only decides how soon work is claimed.
 */
export class KnownTenants {
  readonly #runtime: Pick<Runtime, 'store' | 'log'>;
  readonly #options: KnownTenantsOptions;
  readonly #tenants = new Set<string>();

  constructor(runtime: Pick<Runtime, 'store' | 'log'>, options: KnownTenantsOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  has(tenant: string): boolean {
    return this.#tenants.has(tenant);
  }

  /** Whether a tenant may be one of them: another host may have added it. */
  mayHave(tenant: string): boolean {
    return this.#runtime.store.isShared || this.#tenants.has(tenant);
  }

  /** To be called before the commit that makes a tenant one of them, so that nothing goes unnoticed afterwards. */
  add(tenant: string): void {
    this.#tenants.add(tenant);
  }

  /** Tells other hosts, after the commit. */
  announce(tenant: string): void {
    this.#runtime.store.hint([`${this.#options.topic}:${tenant}`]);
  }

  /** To be called before the host listens. */
  async load(): Promise<void> {
    const rows = await this.#runtime.store.read<{ tenant: string }>(this.#options.list());
    for (const { tenant } of rows) this.#tenants.add(tenant);
  }

  /** Listens for tenants that other hosts have added. */
  get onHint(): Readonly<Record<string, HintListener>> {
    return { [this.#options.topic]: () => void this.#loadAgain() };
  }

  async #loadAgain(): Promise<void> {
    try {
      await this.load();
    } catch (error) {
      const { topic } = this.#options;
      this.#runtime.log.warn(
        { err: error, topic },
        'the tenants could not be read; their work may start a second late',
      );
    }
  }
}

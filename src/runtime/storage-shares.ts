import { type Refusal, refuse } from '../protocol/errors.ts';
import type { StoredEvent } from '../store/log.ts';
import type { Write } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import { bytesOfTenant, countBytes, mostBytes, type StorageShard } from '../store/tenant-storage.ts';
import { BoundedCache } from './bounded-cache.ts';

/** What a tenant that has stored too much is told to wait: the sweep of expired runs comes as often. */
const RETRY_AFTER_S = 600;

/** Each host fills no more than this part of what a tenant has left before it looks again: the others fill it too. */
const HOSTS_MAX = 32;
/** Tenants whose room is remembered. */
const TENANTS_MAX = 10_000;

/** How storage is shared. */
interface StorageOptions {
  /** Bytes that one tenant may store; no limit if omitted. */
  readonly perTenant?: number | undefined;
  /** The row in which this host counts. */
  readonly shard?: string | undefined;
}

/**
 * How many bytes each tenant has stored in its runs: their inputs and logs. They are counted in the unit that writes
 * them. A tenant that has used up its share starts no more runs; those that it has go on to their end.
 */
export class StorageShares {
  readonly #store: Pick<Store, 'read'>;
  readonly #perTenant: number;
  readonly #shard: string;
  /** Bytes that this host may count for a tenant before it looks again how much is stored. */
  readonly #room = new BoundedCache<string, { bytes: number }>(TENANTS_MAX);

  constructor(
    store: Pick<Store, 'read'>,
    { perTenant = Number.MAX_SAFE_INTEGER, shard = 'host' }: StorageOptions = {},
  ) {
    this.#store = store;
    this.#perTenant = perTenant;
    this.#shard = shard;
  }

  /** The row in which this host counts for a tenant. */
  shardOf(tenant: string): StorageShard {
    return { tenant, shard: this.#shard };
  }

  /** Counts what a unit stores: events, and the facts of a new run. */
  count(tenant: string, events: readonly StoredEvent[], facts = ''): Write {
    let bytes = Buffer.byteLength(facts);
    for (const { body, hidden } of events) bytes += Buffer.byteLength(body) + Buffer.byteLength(hidden ?? '');
    const room = this.#room.get(tenant);
    if (room) room.bytes -= bytes;
    return countBytes(this.shardOf(tenant), bytes);
  }

  /** Refuses if the tenant has used up its share. The store is asked only when that is possible. */
  async refusal(tenant: string): Promise<Refusal | undefined> {
    if ((this.#room.get(tenant)?.bytes ?? 0) > 0) return undefined;
    const [row] = await this.#store.read<{ bytes: number }>(bytesOfTenant(tenant));
    const bytes = Number(row?.bytes ?? 0);
    this.#room.set(tenant, { bytes: (this.#perTenant - bytes) / HOSTS_MAX });
    if (bytes < this.#perTenant) return undefined;
    return {
      ...refuse(
        'rate_limited',
        'Your tenant has reached its storage limit. Try again when some of its runs have expired.',
        {
          scope: 'tenant-storage',
          limit: this.#perTenant,
          observed: bytes,
          retryAfterMs: RETRY_AFTER_S * 1_000,
        },
      ),
      headers: { 'Retry-After': String(RETRY_AFTER_S) },
    };
  }

  /** The most that one tenant has stored, and how many have used up their share. */
  async most(): Promise<{ readonly bytes: number; readonly tenantsAtLimit: number }> {
    const [row] = await this.#store.read<{ most: number; full_tenants: number }>(mostBytes(this.#perTenant));
    return { bytes: Number(row?.most ?? 0), tenantsAtLimit: Number(row?.full_tenants ?? 0) };
  }
}

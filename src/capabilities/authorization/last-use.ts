import type { Unit } from '../../store/sql.ts';
import type { Store } from '../../store/store.ts';
import type { Log } from '../../system/log.ts';
import type { AuditService } from '../audit/service.ts';
import { storageTenant } from './keys.ts';
import { type KeyRow, touchKey } from './records.ts';

/** A key that is in use all the time costs one write in so many milliseconds. */
const EVERY_MS = 60_000;
const DAY_MS = 24 * 60 * 60 * 1_000;

/**
 * Writes down when keys were last used, beside the requests: none waits for it, none fails by it. The audit log learns
 * of the first use on each day.
 */
export class LastUse {
  readonly #store: Store;
  readonly #log: Log;
  readonly #audit: Pick<AuditService, 'record'>;
  readonly #writing = new Set<string>();

  constructor(store: Store, log: Log, audit: Pick<AuditService, 'record'>) {
    this.#store = store;
    this.#log = log;
    this.#audit = audit;
  }

  note(row: KeyRow, now: number): void {
    const { key_id: keyId, last_used_at: last } = row;
    if ((last !== null && now - last < EVERY_MS) || this.#writing.has(keyId)) return;
    this.#writing.add(keyId);
    const isFirstToday = last === null || dayOf(last) !== dayOf(now);
    this.#store
      .commit([touchKey(keyId, EVERY_MS), ...(isFirstToday ? this.#recordOf(row) : [])])
      .catch((error) => this.#log.warn({ keyId, err: error }, 'the last use of a key was not written down'))
      .finally(() => this.#writing.delete(keyId));
  }

  #recordOf({ key_id, tenant, workspace, principal, is_test }: KeyRow): Unit {
    return this.#audit.record({
      tenant: storageTenant(tenant, is_test === 1),
      workspace: workspace ?? undefined,
      actor: principal,
      action: 'key.used',
      target: key_id,
    });
  }
}

function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}

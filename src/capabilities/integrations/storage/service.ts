import { isRefusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { and, type Change, changeOf, commitOrThrow, perform, unchanged } from '../../../runtime/change.ts';
import type { KvList, KvRequest } from '../../../runtime/effects/kv.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { settleEffect } from '../../../store/effects.ts';
import { redactValue } from '../../../system/redaction.ts';
import type { Storage, StorageScope } from './door.ts';
import { countEntries, deleteExpired, type EntryRow, findEntry, listEntries, type Place } from './records.ts';
import { checkKeys, decideEntry, storageFailure } from './rules.ts';

const ENTRIES_MAX = 10_000;
/** Expired entries that are deleted with each new one: there are never many more than were made in a lifetime. */
const EXPIRED_AT_ONCE = 20;

/** Values by key. Changes of one key on this host wait for each other; those of other hosts are conflicts. */
export class StorageService implements Storage {
  readonly #runtime: Pick<Runtime, 'store' | 'mutex'>;

  constructor(runtime: Pick<Runtime, 'store' | 'mutex'>) {
    this.#runtime = runtime;
  }

  /** Performs the request of a node and records the effect's result in the same unit, so that it happens once. */
  readonly seam: SeamDrivers['kv'] = (request, { tenant, workspace = '', effectId }) => {
    const scope = { tenant, workspace };
    return this.#perform(scope, request, async () => {
      const change = await this.decide(scope, request);
      if (request.op === 'get' || request.op === 'list') return change;
      return and(change, changeOf(undefined, [settleEffect(tenant, effectId, 'done', JSON.stringify(change.result))]));
    });
  };

  perform(scope: StorageScope, request: KvRequest): Promise<JsonObject> {
    return this.#perform(scope, request, () => this.decide(scope, request));
  }

  async decide(scope: StorageScope, request: KvRequest): Promise<Change<JsonObject>> {
    const asked = checkKeys(redactValue(request));
    if (asked.op === 'list') return unchanged(await this.#list(scope, asked));
    const place: Place = { ...scope, namespace: asked.namespace, key: asked.key };
    const [row] = await this.#runtime.store.read<EntryRow>(findEntry(place));
    const { result, write, isNew = false } = decideEntry(place, row, asked);
    if (isNew) await this.#makeRoom(scope);
    return changeOf(result, write ? [write] : [], { retryOn: ['entry'] });
  }

  async #perform(
    scope: StorageScope,
    request: KvRequest,
    decide: () => Promise<Change<JsonObject>>,
  ): Promise<JsonObject> {
    const key = 'key' in request ? request.key : request.prefix;
    const mutexKey = JSON.stringify(['kv', scope.tenant, scope.workspace, request.namespace, key]);
    const result = await perform(this.#runtime, decide, { mutexKey });
    if (!isRefusal(result)) return result;
    throw storageFailure('conflict', `Other runs keep changing the key ${JSON.stringify(key)}.`, true);
  }

  async #list(scope: StorageScope, { namespace, prefix, limit, cursor = '' }: KvList): Promise<JsonObject> {
    const after = Buffer.from(cursor, 'base64url').toString('utf8');
    const listing = { ...scope, namespace, prefix, after, limit: limit + 1 };
    const rows = await this.#runtime.store.read<EntryRow>(listEntries(listing));
    const keys = rows.slice(0, limit).map(({ entry_key }) => entry_key);
    const last = keys.at(-1);
    const isMore = rows.length > limit && last !== undefined;
    return { keys, nextCursor: isMore ? Buffer.from(last, 'utf8').toString('base64url') : null };
  }

  /** Deletes some expired entries, in a unit of its own: whether there is room is decided by what is left. */
  async #makeRoom(scope: StorageScope): Promise<void> {
    const { store } = this.#runtime;
    await commitOrThrow(store, [deleteExpired(scope.tenant, EXPIRED_AT_ONCE)]);
    const [counted] = await store.read<{ entries: number }>(countEntries(scope, ENTRIES_MAX));
    if (Number(counted?.entries) < ENTRIES_MAX) return;
    throw storageFailure('storage_limit_exceeded', `The workspace has ${ENTRIES_MAX} entries, which is the limit.`);
  }
}

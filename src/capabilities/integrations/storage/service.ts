import { deepEqual, type JsonObject } from '../../../protocol/format/json.ts';
import { KV_LIMITS, type KvList, type KvRequest } from '../../../runtime/effects/kv.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import { Turns } from '../../../runtime/turns.ts';
import type { Unit, Write } from '../../../store/sql.ts';
import type { Store } from '../../../store/store.ts';
import { redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import {
  changeEntry,
  countEntries,
  dropEntry,
  type EntryRow,
  findEntry,
  forgetExpired,
  listEntries,
  type Place,
  putEntry,
  type Scope,
} from './records.ts';

const ENTRIES_MAX = 10_000;
const FORGET_MAX = 20;
/** Each try that fails is one that succeeded on another host. */
const TRIES_MAX = 50;

type Keyed = Exclude<KvRequest, KvList>;

export interface StorageService {
  /** `settle` is written in the transaction in which it happens, knowing what came of it: then it happens once. */
  perform(scope: Scope, request: KvRequest, settle?: (result: JsonObject) => Unit): Promise<JsonObject>;
}

/** Values by key, for workflows. Changes of one key are one after the other, whoever makes them. */
export function storageService({ runtime: { store } }: Pick<Host, 'runtime'>): StorageService {
  const turns = new Turns();
  return {
    async perform(scope, request, settle = () => []) {
      const asked = checked(redactValue(request));
      if (asked.op === 'list') return list(store, scope, asked);
      const place: Place = { ...scope, namespace: asked.namespace, key: asked.key };
      const name = JSON.stringify([place.tenant, place.workspace, place.namespace, place.key]);
      return turns.take(name, () => change(store, place, asked, settle));
    },
  };
}

async function change(
  store: Store,
  place: Place,
  request: Keyed,
  settle: (result: JsonObject) => Unit,
): Promise<JsonObject> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const [row] = await store.read<EntryRow>(findEntry(place));
    const { result, write, isNew = false } = decide(place, row, request);
    if (!write && request.op === 'get') return result;
    if (isNew) await makeRoom(store, place);
    const outcome = await store.commit([...(write ? [write] : []), ...settle(result)]);
    if (outcome.committed) return result;
    if (outcome.broke !== 'entry') throw new Error(`the ${outcome.broke} of a change of a key is gone`);
  }
  throw failure('conflict', 'The key is changing too quickly.', true);
}

interface Change {
  readonly result: JsonObject;
  readonly write?: Write;
  readonly isNew?: boolean;
}

/** What becomes of a key, by what it holds now. */
function decide(place: Place, row: EntryRow | undefined, request: Keyed): Change {
  const isLive = row !== undefined && (row.remaining_ms === null || row.remaining_ms > 0);
  const value: unknown = isLive ? JSON.parse(row.value) : null;
  const put = (next: unknown, ttlMs: number | null = null): Pick<Change, 'write' | 'isNew'> => ({
    write: putEntry(place, encode(next), ttlMs, row?.version),
    isNew: row === undefined,
  });
  switch (request.op) {
    case 'get':
      if (!isLive) return { result: { found: false } };
      return {
        result: { found: true, value, ...(row.remaining_ms === null ? {} : { ttlRemainingMs: row.remaining_ms }) },
      };
    case 'set': {
      const ttlMs = request.ttlSeconds === undefined ? null : Math.round(request.ttlSeconds * 1_000);
      return { result: { ok: true, replaced: isLive }, ...put(request.value, ttlMs) };
    }
    case 'delete':
      return { result: { deleted: isLive }, ...(row ? { write: dropEntry(place, row.version) } : {}) };
    case 'increment': {
      const previous = isLive ? value : 0;
      if (!Number.isSafeInteger(previous)) throw failure('validation_error', 'The key does not hold a whole number.');
      const next = (previous as number) + request.delta;
      if (!Number.isSafeInteger(next)) throw failure('validation_error', 'The number would become too large.');
      const write = isLive ? { write: changeEntry(place, encode(next), row.version) } : put(next);
      return { result: { value: next, previous }, ...write };
    }
    case 'cas': {
      const isExpected = isLive ? request.expect !== null && deepEqual(value, request.expect) : request.expect === null;
      if (!isExpected) return { result: { swapped: false, actual: value } };
      const write = isLive ? { write: changeEntry(place, encode(request.set), row.version) } : put(request.set);
      return { result: { swapped: true }, ...write };
    }
  }
}

async function list(
  store: Store,
  scope: Scope,
  { namespace, prefix, limit, cursor = '' }: KvList,
): Promise<JsonObject> {
  const after = Buffer.from(cursor, 'base64url').toString('utf8');
  const listing = { ...scope, namespace, prefix, after, limit: limit + 1 };
  const rows = await store.read<EntryRow>(listEntries(listing));
  const keys = rows.slice(0, limit).map(({ entry_key }) => entry_key);
  const last = keys.at(-1);
  const isMore = rows.length > limit && last !== undefined;
  return { keys, nextCursor: isMore ? Buffer.from(last, 'utf8').toString('base64url') : null };
}

async function makeRoom(store: Store, scope: Scope): Promise<void> {
  await store.commit([forgetExpired(scope.tenant, FORGET_MAX)]);
  const [counted] = await store.read<{ entries: number }>(countEntries(scope, ENTRIES_MAX));
  if (Number(counted?.entries) < ENTRIES_MAX) return;
  throw failure('storage_limit_exceeded', `There are ${ENTRIES_MAX} entries already.`);
}

function encode(value: unknown): string {
  const text = JSON.stringify(value ?? null);
  if (Buffer.byteLength(text) <= KV_LIMITS.valueBytes) return text;
  throw failure('storage_limit_exceeded', `A value has at most ${KV_LIMITS.valueBytes} bytes as JSON.`);
}

/** Keys go into columns: what cannot be kept as it is would be another key. */
function checked<R extends KvRequest>(request: R): R {
  for (const name of [request.namespace, 'key' in request ? request.key : request.prefix]) {
    if (Buffer.byteLength(name) > KV_LIMITS.keyBytes) {
      throw failure('storage_limit_exceeded', `A key has at most ${KV_LIMITS.keyBytes} bytes.`);
    }
    if (!name.isWellFormed() || /\p{Cc}/u.test(name)) {
      throw failure('validation_error', 'A key has no control characters and no broken ones.');
    }
  }
  return request;
}

function failure(code: string, message: string, retryable = false): NodeFailure {
  return new NodeFailure({ code, message, retryable });
}

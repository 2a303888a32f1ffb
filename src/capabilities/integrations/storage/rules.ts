import { deepEqual, type JsonObject } from '../../../protocol/format/json.ts';
import { KV_LIMITS, type KvList, type KvRequest } from '../../../runtime/effects/kv.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Write } from '../../../store/sql.ts';
import { changeEntry, deleteEntry, type EntryRow, type Place, putEntry } from './records.ts';

/** A request about one key. */
export type KeyRequest = Exclude<KvRequest, KvList>;

/** What a request does to the entry of its key. */
export interface EntryDecision {
  readonly result: JsonObject;
  readonly write?: Write;
  /** Whether the write adds an entry. */
  readonly isNew?: boolean;
}

/** The entry as a decision sees it: an expired one has no value, but its row can still be replaced. */
interface Current {
  readonly place: Place;
  readonly row: EntryRow | undefined;
  readonly isLive: boolean;
  readonly value: unknown;
}

type Operation = KeyRequest['op'];
type Decisions = { readonly [O in Operation]: (current: Current, request: RequestOf<O>) => EntryDecision };
type RequestOf<O extends Operation> = Extract<KeyRequest, { readonly op: O }>;

const DECISIONS: Decisions = {
  get: ({ row, isLive, value }) => {
    if (!row || !isLive) return { result: { found: false } };
    const ttl = row.remaining_ms === null ? {} : { ttlRemainingMs: row.remaining_ms };
    return { result: { found: true, value, ...ttl } };
  },
  set: (current, { value, ttlSeconds }) => {
    const ttlMs = ttlSeconds === undefined ? null : Math.round(ttlSeconds * 1_000);
    return { result: { ok: true, replaced: current.isLive }, ...put(current, value, ttlMs) };
  },
  delete: ({ place, row, isLive }) => ({
    result: { deleted: isLive },
    ...(row ? { write: deleteEntry(place, row.version) } : {}),
  }),
  increment: (current, { delta }) => {
    const previous = current.isLive ? current.value : 0;
    if (!Number.isSafeInteger(previous)) throw storageFailure('validation_error', 'The value is not a whole number.');
    const next = (previous as number) + delta;
    if (!Number.isSafeInteger(next)) throw storageFailure('validation_error', 'The number would become too large.');
    return { result: { value: next, previous }, ...replace(current, next) };
  },
  cas: (current, { expect, set }) => {
    const { isLive, value } = current;
    const isExpected = isLive ? expect !== null && deepEqual(value, expect) : expect === null;
    if (!isExpected) return { result: { swapped: false, actual: value } };
    return { result: { swapped: true }, ...replace(current, set) };
  },
};

/** Decides what becomes of a key by what it holds now. Throws NodeFailure if the request cannot be met. */
export function decideEntry<O extends Operation>(
  place: Place,
  row: EntryRow | undefined,
  request: RequestOf<O>,
): EntryDecision {
  const isLive = row !== undefined && (row.remaining_ms === null || row.remaining_ms > 0);
  const decide: Decisions[O] = DECISIONS[request.op as O];
  return decide({ place, row, isLive, value: isLive ? JSON.parse(row.value) : null }, request);
}

/** Sets the value and its time to live. */
function put({ place, row }: Current, value: unknown, ttlMs: number | null): Pick<EntryDecision, 'write' | 'isNew'> {
  return { write: putEntry(place, encode(value), ttlMs, row?.version), isNew: row === undefined };
}

/** Sets the value of a live entry without changing when it expires; an absent one is set without expiry. */
function replace(current: Current, value: unknown): Pick<EntryDecision, 'write' | 'isNew'> {
  const { place, row, isLive } = current;
  return row && isLive ? { write: changeEntry(place, encode(value), row.version) } : put(current, value, null);
}

function encode(value: unknown): string {
  const text = JSON.stringify(value ?? null);
  if (Buffer.byteLength(text) <= KV_LIMITS.valueBytes) return text;
  throw storageFailure('storage_limit_exceeded', `A value has at most ${KV_LIMITS.valueBytes} bytes as JSON.`);
}

/** Refuses names that the store could not keep as they are: they might become the name of another key. */
export function checkKeys<R extends KvRequest>(request: R): R {
  for (const name of [request.namespace, 'key' in request ? request.key : request.prefix]) {
    if (Buffer.byteLength(name) > KV_LIMITS.keyBytes) {
      throw storageFailure('storage_limit_exceeded', `A key has at most ${KV_LIMITS.keyBytes} bytes.`);
    }
    if (!name.isWellFormed() || /\p{Cc}/u.test(name)) {
      throw storageFailure('validation_error', 'A key must not contain control characters or lone surrogates.');
    }
  }
  return request;
}

/** A request of a node that fails it. */
export function storageFailure(code: string, message: string, retryable = false): NodeFailure {
  return new NodeFailure({ code, message, retryable });
}

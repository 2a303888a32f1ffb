import { deepEqual, isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { ChannelDeclaration, WorkflowNode } from '../../protocol/running/workflows.ts';

/** The bounds of a channel: from its declaration or, if it is undeclared, from the config of the writing node. */
export type ChannelOptions = Pick<ChannelDeclaration, 'maxSize' | 'ttlMs' | 'default'>;

/** An entry of a channel with a TTL: the written value and the time of writing (epoch ms). */
interface TimedEntry {
  readonly value: unknown;
  readonly _ts: number;
}

interface Reducer {
  readonly empty: unknown;
  /** Whether the state is a list that drops its oldest entries when it exceeds `maxSize`. */
  readonly list: boolean;
  readonly takesTtl: boolean;
  reduce(state: unknown, value: unknown): unknown;
}

const append = (state: unknown, value: unknown): unknown => {
  (state as unknown[]).push(value);
  return state;
};

function merge(state: JsonObject, value: JsonObject): JsonObject {
  for (const key of Object.keys(value)) {
    // Assigning to this name would change the prototype.
    if (key === '__proto__') Object.defineProperty(state, key, { ...ORDINARY, value: value[key] });
    else state[key] = value[key];
  }
  return state;
}

const ORDINARY = { configurable: true, enumerable: true, writable: true };

/** A copy of the state of a channel that later writes do not change. */
export function copied(state: unknown): unknown {
  if (Array.isArray(state)) return [...state];
  return isObject(state) ? { ...state } : state;
}

const REDUCERS: Record<string, Reducer> = {
  // The value belongs to its event, which a write by another reducer must not change.
  replace: { empty: undefined, list: false, takesTtl: false, reduce: (_state, value) => copied(value) },
  append: { empty: [], list: true, takesTtl: true, reduce: append },
  merge: {
    empty: {},
    list: false,
    takesTtl: false,
    reduce: (state, value) => merge(isObject(state) ? state : {}, isObject(value) ? value : {}),
  },
  counter: {
    empty: 0,
    list: false,
    takesTtl: false,
    reduce: (state, value) => Number(state) + (typeof value === 'number' ? value : 0),
  },
  votes: {
    empty: [],
    list: true,
    takesTtl: true,
    reduce: (state, value) => [...(state as unknown[]).filter((vote) => !sameMember(vote, value, 'userId')), value],
  },
  feedback: { empty: [], list: true, takesTtl: true, reduce: append },
  message: {
    empty: [],
    list: true,
    takesTtl: false,
    reduce: (state, value) =>
      (state as unknown[]).some((entry) => sameMember(entry, value, 'messageId')) ? state : append(state, value),
  },
};

/** Names of the reducers that this host implements. */
export const REDUCER_NAMES: readonly string[] = Object.keys(REDUCERS);

/** As the protocol requires, an unknown (vendor) reducer acts like `replace`: the last write wins. */
function reducerOf(name: string): Reducer {
  return own(REDUCERS, name) ?? REDUCERS.replace!;
}

/** Whether entries of a channel with this reducer can expire. */
export function takesTtl(reducer: string): boolean {
  return reducerOf(reducer).takesTtl;
}

/** Whether a channel with this reducer holds a list. */
export function isListReducer(reducer: string): boolean {
  return reducerOf(reducer).list;
}

/** Whether this host implements the reducer. */
export function isKnownReducer(name: string): boolean {
  return Object.hasOwn(REDUCERS, name);
}

/** Compares one member of two entries; in a channel with a TTL the member is one level deeper. */
function sameMember(a: unknown, b: unknown, member: string): boolean {
  const of = (entry: unknown): unknown => {
    const value = isTimed(entry) ? entry.value : entry;
    return isObject(value) ? value[member] : undefined;
  };
  return of(a) !== undefined && deepEqual(of(a), of(b));
}

function isTimed(entry: unknown): entry is TimedEntry {
  return isObject(entry) && typeof entry._ts === 'number' && 'value' in entry;
}

/** The state of a channel before its first write. */
export function initialState(reducer: string, options: ChannelOptions): unknown {
  return structuredClone(options.default ?? reducerOf(reducer).empty);
}

/**
 * Applies one write to a channel's state. On a channel with a TTL, `value` is already a TimedEntry and `now` is the
 * event's time. Lists and objects are changed in place: only the fold holds them, and a long one takes long to copy.
 */
export function reduceWrite(
  state: unknown,
  write: { readonly reducer: string; readonly value: unknown; readonly now: number },
  options: ChannelOptions,
): unknown {
  const reducer = reducerOf(write.reducer);
  if (reducer.list && !Array.isArray(state)) state = [];
  if (options.ttlMs && Array.isArray(state)) state = prune(state, write.now - options.ttlMs);
  const next = reducer.reduce(state, write.value);
  if (reducer.list && options.maxSize && Array.isArray(next) && next.length > options.maxSize) {
    return next.slice(next.length - options.maxSize);
  }
  return next;
}

/** Scans all entries, because they need not be in order of time: the clocks of hosts differ. */
function prune(entries: unknown[], oldest: number): unknown[] {
  const isStale = (entry: unknown): boolean => isTimed(entry) && entry._ts < oldest;
  return entries.some(isStale) ? entries.filter((entry) => !isStale(entry)) : entries;
}

/** Whether a write would exceed `maxSize` on a channel that cannot drop old entries. */
export function overflows(state: unknown, reducer: string, value: unknown, maxSize: number | undefined): boolean {
  if (!maxSize || reducerOf(reducer).list) return false;
  const next = reducerOf(reducer).reduce(copied(state) ?? initialState(reducer, {}), value);
  const size = Array.isArray(next) ? next.length : isObject(next) ? Object.keys(next).length : 0;
  return size > maxSize;
}

type Side = 'readers' | 'writers';

/** Whether the channel's access list lets a node read or write it. */
export function mayAccess(
  channel: ChannelDeclaration | undefined,
  node: Pick<WorkflowNode, 'id' | 'typeId'>,
  side: Side,
): boolean {
  const access = channel?.access ?? 'public';
  if (access === 'public') return true;
  if (access === 'private') return false;
  return access[side]?.some((entry) => matchesEntry(entry, node)) ?? true;
}

function matchesEntry(entry: string, node: Pick<WorkflowNode, 'id' | 'typeId'>): boolean {
  if (entry === '*' || entry === node.id || entry === node.typeId) return true;
  return entry.endsWith('*') && node.typeId.startsWith(entry.slice(0, -1));
}

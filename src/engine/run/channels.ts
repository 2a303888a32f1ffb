import { deepEqual, isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { ChannelDeclaration, WorkflowNode } from '../../protocol/running/workflows.ts';

/** What bounds a channel: its declaration, or for an undeclared one the config of the node that writes. */
export type ChannelOptions = Pick<ChannelDeclaration, 'maxSize' | 'ttlMs' | 'default'>;

/** An entry of a channel with a time to live: what was written, and when. */
export interface TimedEntry {
  readonly value: unknown;
  readonly _ts: number;
}

interface Reducer {
  readonly empty: unknown;
  /** Whether the state is a list that drops its oldest entries when it grows too long. */
  readonly list: boolean;
  readonly takesTtl: boolean;
  reduce(state: unknown, value: unknown): unknown;
}

const append = (state: unknown, value: unknown): unknown => {
  (state as unknown[]).push(value);
  return state;
};

const REDUCERS: Record<string, Reducer> = {
  replace: { empty: undefined, list: false, takesTtl: false, reduce: (_state, value) => value },
  append: { empty: [], list: true, takesTtl: true, reduce: append },
  merge: {
    empty: {},
    list: false,
    takesTtl: false,
    reduce: (state, value) => ({ ...(state as JsonObject), ...(isObject(value) ? value : {}) }),
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

export const REDUCER_NAMES: readonly string[] = Object.keys(REDUCERS);

/** Reducers of vendors are not known here; as the protocol says, the newest value wins. */
function reducerOf(name: string): Reducer {
  return own(REDUCERS, name) ?? REDUCERS.replace!;
}

export function takesTtl(reducer: string): boolean {
  return reducerOf(reducer).takesTtl;
}

export function isListReducer(reducer: string): boolean {
  return reducerOf(reducer).list;
}

export function isKnownReducer(name: string): boolean {
  return Object.hasOwn(REDUCERS, name);
}

/** Members of TTL entries are one level down. */
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

export function initialState(reducer: string, options: ChannelOptions): unknown {
  return structuredClone(options.default ?? reducerOf(reducer).empty);
}

/**
 * Folds one write. `value` is what the event carries, so on a channel with a time to live it is a TimedEntry already;
 * `now` is the event's own time. List states are extended in place: only the fold holds them.
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

/** Entries need not be in the order of their times: clocks of hosts differ. */
function prune(entries: unknown[], oldest: number): unknown[] {
  const isStale = (entry: unknown): boolean => isTimed(entry) && entry._ts < oldest;
  return entries.some(isStale) ? entries.filter((entry) => !isStale(entry)) : entries;
}

/** A write that a bounded channel cannot drop its way out of. */
export function overflows(state: unknown, reducer: string, value: unknown, maxSize: number | undefined): boolean {
  if (!maxSize || reducerOf(reducer).list) return false;
  const next = reducerOf(reducer).reduce(state ?? initialState(reducer, {}), value);
  const size = Array.isArray(next) ? next.length : isObject(next) ? Object.keys(next).length : 0;
  return size > maxSize;
}

type Side = 'readers' | 'writers';

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

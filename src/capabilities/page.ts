import { type TProperties, type TSchema, Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts';
import { Closed } from '../protocol/format/schema.ts';
import { type Reply, reply } from './request.ts';

const PAGE_DEFAULT = 50;
const PAGE_MAX = 200;
/** A page that has reached this size ends early. An item has at most the size of a request, so it can be this much more. */
const PAGE_CHARACTERS_MAX = 4_000_000;
/** How many rows that may be large are read at once. */
const ROWS_AT_ONCE = 10;

/** The query of a list: its own filters, the page size and the cursor. Numbers arrive as text. */
export const ListQuery = <P extends TProperties>(filters: P) =>
  Closed({
    ...filters,
    limit: Type.Optional(Type.String({ pattern: '^[0-9]{1,4}$', description: `At most ${PAGE_MAX}` })),
    cursor: Type.Optional(Type.String({ maxLength: 512 })),
  });

/** The reply of a list. */
export const Page = <T extends TSchema>(item: T) =>
  Type.Object({ items: Type.Array(item), nextCursor: Type.Optional(Type.String()) });

/** Which page of a list is requested. `P` is a position in the list: an id, or what `placeIn` makes of the text. */
interface PageRequest<P = string> {
  readonly limit: number;
  /** The position where the page before ended. */
  readonly after?: P;
  /** Reads a position from its text; undefined if the text is none. */
  placeIn(position: string): P | undefined;
}

interface PageQuery {
  readonly limit?: string;
  readonly cursor?: string;
}

/** Reads page size and cursor of a list whose positions are ids. */
export function pageRequest(query: PageQuery): PageRequest | Refusal {
  return pageFrom(query, itself<string>);
}

/**
 * Reads page size and cursor. A cursor is the position where the last page ended, in base64url; callers treat it as
 * opaque.
 */
export function pageFrom<P>(
  { limit, cursor }: PageQuery,
  placeIn: PageRequest<P>['placeIn'],
): PageRequest<P> | Refusal {
  const size = limit === undefined ? PAGE_DEFAULT : Number(limit);
  if (size < 1 || size > PAGE_MAX) {
    return refuse('validation_error', `limit must be a number from 1 to ${PAGE_MAX}.`, { field: 'limit' });
  }
  if (cursor === undefined) return { limit: size, placeIn };
  const position = Buffer.from(cursor, 'base64url').toString('utf8');
  const after = CURSOR.test(position) && encodeCursor(position) === cursor ? placeIn(position) : undefined;
  if (after !== undefined) return { limit: size, after, placeIn };
  const message = 'The cursor was not issued by this list. Leave it out to start at the beginning.';
  return refuse('validation_error', message, { field: 'cursor' });
}

/** Reads the position in a list that is sorted by a number. */
export function numberIn(position: string): number | undefined {
  return /^\d{1,15}$/.test(position) ? Number(position) : undefined;
}

interface NumberAndId {
  readonly number: number;
  readonly id: string;
}

/** The position before the first entry of a list that is sorted by a number, highest first, and then by an id. */
export const LIST_START: NumberAndId = { number: Number.MAX_SAFE_INTEGER, id: '' };

/** Reads the position in a list that is sorted by a number, such as a time, and then by an id. */
export function numberAndIdIn(position: string): NumberAndId | undefined {
  const [, number, id] = /^(\d{1,15})\.(.+)$/.exec(position) ?? [];
  return id === undefined ? undefined : { number: Number(number), id };
}

const CURSOR = /^[A-Za-z0-9._~-]{1,320}$/;

function encodeCursor(position: string): string {
  return Buffer.from(position, 'utf8').toString('base64url');
}

/** The page of a list as it is answered. */
interface AnsweredPage<T> {
  items: T[];
  nextCursor?: string;
}

/** How the rows of a list are read and shown. */
interface List<R, T, P = string> {
  /** Reads rows after a position, or the first ones. */
  read(after: P | undefined, limit: number): Promise<readonly R[]>;
  show(row: R): T;
  positionOf(row: R): string;
  /** What was read for a row, if it can be much larger than what is shown of it. */
  sourceOf?(row: R): unknown;
}

/**
 * Reads a page of a list whose rows may be large, a few rows at a time. The page ends early, with a cursor, once its
 * rows have reached `PAGE_CHARACTERS_MAX`.
 */
export async function readPage<R, T, P>(request: PageRequest<P>, list: List<R, T, P>): Promise<AnsweredPage<T>> {
  const items: T[] = [];
  let { after } = request;
  let room = PAGE_CHARACTERS_MAX;
  for (;;) {
    const limit = Math.min(ROWS_AT_ONCE, request.limit - items.length);
    const rows = await list.read(after, limit + 1);
    const taken = take(rows.slice(0, limit), room, list);
    items.push(...taken.items);
    if (taken.items.length === rows.length) return { items };
    const end = taken.end!;
    room -= taken.size;
    if (room <= 0 || items.length === request.limit) return { items, nextCursor: encodeCursor(end) };
    after = request.placeIn(end);
  }
}

/**
 * A page of rows, of which one more than the page size was read: the extra row means that there is another page. Items
 * that are left out because the page has reached `PAGE_CHARACTERS_MAX` are on the next one.
 */
export function pageOf<R, T>(
  rows: readonly R[],
  { limit }: { readonly limit: number },
  show: (row: R) => T,
  positionOf: (row: R) => string,
): AnsweredPage<T> {
  const { items, end } = take(rows.slice(0, limit), PAGE_CHARACTERS_MAX, { show, positionOf });
  return end !== undefined && rows.length > items.length ? { items, nextCursor: encodeCursor(end) } : { items };
}

/** The items of the first rows, up to the one that fills the room; at least one, if there is any. */
function take<R, T>(rows: readonly R[], room: number, { show, positionOf, sourceOf }: Omit<List<R, T>, 'read'>) {
  const items: T[] = [];
  let size = 0;
  for (const row of rows) {
    if (items.length > 0 && size >= room) break;
    const item = show(row);
    items.push(item);
    size += sizeOf(sourceOf ? sourceOf(row) : item);
  }
  const last = rows[items.length - 1];
  return { items, size, end: last === undefined ? undefined : positionOf(last) };
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}

/** The same for documents that are shown as they are, sorted by id. */
export function pageById<T extends { readonly id: string }>(found: readonly T[], page: { readonly limit: number }) {
  return pageOf(found, page, itself, idOf);
}

/** Reads a page of documents that may be large, are shown as they are and sorted by id. */
export function readPageById<T extends { readonly id: string }>(request: PageRequest, read: List<T, T>['read']) {
  return readPage(request, { read, show: itself<T>, positionOf: idOf });
}

/** Answers with a page of such documents. */
export async function answerPageById<T extends { readonly id: string }>(
  query: PageQuery,
  read: List<T, T>['read'],
): Promise<Reply | Refusal> {
  const request = pageRequest(query);
  return isRefusal(request) ? request : reply(200, await readPageById(request, read));
}

function itself<T>(document: T): T {
  return document;
}

function idOf({ id }: { readonly id: string }): string {
  return id;
}

import { type TProperties, type TSchema, Type } from 'typebox';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { Closed } from '../protocol/format/schema.ts';

const PAGE_DEFAULT = 50;
const PAGE_MAX = 200;

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

/** Which page of a list is requested. */
interface PageRequest {
  readonly limit: number;
  /** The position where the page before ended. */
  readonly after?: string;
}

/** Reads page size and cursor. A cursor is the position where the last page ended, in base64url; callers treat it as opaque. */
export function pageRequest({ limit, cursor }: { limit?: string; cursor?: string }): PageRequest | Refusal {
  const size = limit === undefined ? PAGE_DEFAULT : Number(limit);
  if (size < 1 || size > PAGE_MAX) {
    return refuse('validation_error', `limit must be a number from 1 to ${PAGE_MAX}.`, { field: 'limit' });
  }
  if (cursor === undefined) return { limit: size };
  const after = Buffer.from(cursor, 'base64url').toString('utf8');
  if (!CURSOR.test(after) || encodeCursor(after) !== cursor) {
    return refuse('validation_error', 'cursor is not a cursor of this list.', { field: 'cursor' });
  }
  return { limit: size, after };
}

const CURSOR = /^[A-Za-z0-9._~-]{1,320}$/;

function encodeCursor(position: string): string {
  return Buffer.from(position, 'utf8').toString('base64url');
}

/** A page of rows, of which one more than the page size was read: the extra row means that there is another page. */
export function pageOf<R, T>(
  rows: readonly R[],
  { limit }: PageRequest,
  show: (row: R) => T,
  positionOf: (row: R) => string,
): { items: T[]; nextCursor?: string } {
  const shown = rows.slice(0, limit);
  const items = shown.map(show);
  const last = shown.at(-1);
  return rows.length > limit && last !== undefined ? { items, nextCursor: encodeCursor(positionOf(last)) } : { items };
}

/** The same for documents that are shown as they are, sorted by id. */
export function pageById<T extends { readonly id: string }>(found: readonly T[], page: PageRequest) {
  return pageOf(
    found,
    page,
    (each) => each,
    ({ id }) => id,
  );
}

/**
 * Statements are written once, in the SQL that SQLite and PostgreSQL share, with `$1` for parameters. What truly
 * differs hides behind a few words that each driver renders: `$now` (the store's clock, epoch ms), `$skipLocked`
 * (leave rows that another host is claiming), `$transaction` (the number of the transaction that writes), `$settled`
 * (below it every transaction is over) and, in migrations, `$clustered` (keep rows in key order).
 */
export type Param = string | number | null;

export interface Statement {
  readonly sql: string;
  readonly params: readonly Param[];
}

/** A statement that changes something. */
export interface Write extends Statement {
  /** How many rows it must touch; with any other number the whole unit is undone. */
  readonly expect?: number;
  /** What to call the promise that `expect` keeps; a refused unit says which one was broken. */
  readonly keeps?: string;
  /** It ends in RETURNING, and its rows are wanted. */
  readonly returns?: boolean;
}

/** Writes that happen together or not at all. */
export type Unit = readonly Write[];

export type Row = Record<string, unknown>;

export type CommitOutcome =
  | { readonly committed: true; readonly rows: readonly (readonly Row[])[] }
  | { readonly committed: false; readonly broke: string };

export function sql(text: string, ...params: Param[]): Statement {
  return { sql: text, params };
}

/** `($1, $2), ($3, $4)` for so many rows of so many columns, numbered on from `first`. */
export function placeholders(rows: number, columns: number, first = 1): string {
  const row = (index: number): string =>
    `(${Array.from({ length: columns }, (_, column) => `$${first + index * columns + column}`).join(', ')})`;
  return Array.from({ length: rows }, (_, index) => row(index)).join(', ');
}

/** A parameter of a statement; times are epoch milliseconds and structured values are JSON text. */
export type Param = string | number | null;

/**
 * One SQL statement, written in the subset that SQLite and PostgreSQL share, with `$1`, `$2` … for parameters.
 * Where the two differ, each driver expands a macro: `$now` (the store's clock, epoch ms), `$skipLocked` (skip rows
 * that another host is claiming), `$transaction` (id of the writing transaction), `$settled` (every transaction with a
 * lower id has ended), `$storeBytes` (what the database takes on its disk) and, in migrations, `$clustered` (store rows in primary-key order).
 */
export interface Statement {
  readonly sql: string;
  readonly params: readonly Param[];
  /** Set for a query of few rows by their keys. A store behind a network sends such queries together. */
  readonly isLookup?: boolean;
}

/** A statement that changes rows, with an optional check on how many rows it changed (optimistic concurrency). */
export interface Write extends Statement {
  /** The number of rows the statement must affect; any other number rolls back the whole unit. */
  readonly expect?: number;
  /**
   * Names the check made by `expect` (`sequence`, `lease` …), so that the caller of `commit` can tell which one failed.
   */
  readonly expectation?: string;
  /** Set when the statement ends in RETURNING and the caller wants its rows. */
  readonly returns?: boolean;
  /** Set by `insertNew`. */
  readonly newRows?: NewRows;
  /**
   * Without such a row the write has no effect, as for a tenant without webhooks. A store may look for it once for many
   * units instead of making the writes; nothing in a unit may change whether it is there.
   */
  readonly onlyIf?: TenantRows;
  /** Set by `addCount`. */
  readonly counts?: NewRows;
}

/** The rows of a tenant that a condition looks for. */
export interface TenantRows {
  /** A table with an index that begins with `tenant`. */
  readonly table: string;
  /** An SQL condition on the rows besides their tenant; all of them by default. */
  readonly where?: string;
  readonly tenant: string;
}

/** Where new rows go: the text of an INSERT up to VALUES, how many columns it names, and what becomes of rows that exist. */
export interface NewRows {
  readonly insert: string;
  readonly columns: number;
  readonly onConflict?: string;
}

/** Writes that are applied atomically: all of them, or none. */
export type Unit = readonly Write[];

/** A result row, keyed by column name. */
export type Row = Record<string, unknown>;

/**
 * The result of committing a unit: the rows of its RETURNING writes, or the name of the first expectation that failed.
 */
export type CommitOutcome<R = Row> =
  | { readonly committed: true; readonly rows: readonly (readonly R[])[] }
  | { readonly committed: false; readonly failedExpectation: string };

/** Builds a read-only statement from its text and parameters. */
export function sql(text: string, ...params: Param[]): Statement {
  return { sql: text, params };
}

/** Builds a query of few rows by their keys. Those who ask the same at the same time may get the same rows. */
export function lookup(text: string, ...params: Param[]): Statement {
  return { sql: text, params, isLookup: true };
}

/** Builds the VALUES list `($1, $2), ($3, $4)` for a multi-row insert; numbering starts at `first`. */
export function placeholders(rows: number, columns: number, first = 1): string {
  const row = (index: number): string =>
    `(${Array.from({ length: columns }, (_, column) => `$${first + index * columns + column}`).join(', ')})`;
  return Array.from({ length: rows }, (_, index) => row(index)).join(', ');
}

/** Repeats the last member up to a power of two, so that there are few different statements to prepare. */
export function padded(members: readonly string[]): string[] {
  const size = 2 ** Math.ceil(Math.log2(members.length));
  return [...members, ...Array<string>(size - members.length).fill(members.at(-1)!)];
}

/** Statement texts by number of rows, so that drivers can cache prepared statements. */
const insertTexts = new WeakMap<NewRows, Map<number, string>>();

/**
 * Inserts rows under ids that were just made, or that another write of the unit guards: no other write refers to them. A
 * store may then insert the rows of several units together, before or after everything else.
 */
export function insertNew(into: NewRows, params: readonly Param[]): Write {
  return { sql: insertText(into, params.length / into.columns), params, newRows: into };
}

/**
 * Adds a number, the last parameter, to the row that the others name, which nothing else in a unit reads. A store may
 * then add up the numbers of several units, and write several rows together, after everything else.
 */
export function addCount(into: NewRows, params: readonly Param[]): Write {
  return { sql: insertText(into, 1), params, counts: into };
}

/** Adds to several rows with one statement; each may be there once. */
export function addCounts(into: NewRows, rows: readonly (readonly Param[])[]): Write {
  return { sql: insertText(into, rows.length), params: rows.flat() };
}

function insertText(into: NewRows, rows: number): string {
  if (!Number.isInteger(rows)) throw new Error(`${into.insert} takes ${into.columns} values for each row`);
  const known = insertTexts.get(into)?.get(rows);
  if (known !== undefined) return known;
  const text = [into.insert, 'VALUES', placeholders(rows, into.columns), into.onConflict ?? ''].join(' ').trimEnd();
  insertTexts.set(into, (insertTexts.get(into) ?? new Map<number, string>()).set(rows, text));
  return text;
}

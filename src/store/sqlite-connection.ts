import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Clock } from '../system/clock.ts';
import type { Row, Statement, Write } from './sql.ts';

/** Result codes of SQLite that say something about the statement, not about the disk: error, constraint and the like. */
const CODES_OF_STATEMENTS: ReadonlySet<number> = new Set([1, 18, 19, 20, 21, 25]);
const PRIMARY_CODE = 0xff;

/** Whether the database failed, and not the statement: then trying again later helps. */
export function isOfTheStore(error: unknown): boolean {
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === 'number' && !CODES_OF_STATEMENTS.has(errcode & PRIMARY_CODE);
}

/** Result codes for a file whose pages make no sense, or that is no database at all. */
const CODES_OF_DAMAGE: ReadonlySet<number> = new Set([11, 26]);

/** Whether an error of SQLite says that the file is damaged. */
export function isDamage(error: unknown): boolean {
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === 'number' && CODES_OF_DAMAGE.has(errcode & PRIMARY_CODE);
}

/** A database handle that caches prepared statements and expands the macros of `Statement`. */
export class Connection {
  readonly #database: DatabaseSync;
  readonly #clock: Clock;
  readonly #prepared = new Map<string, Prepared>();
  readonly #inserts = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  get isInTransaction(): boolean {
    return this.#database.isOpen && this.#database.isTransaction;
  }

  exec(text: string): void {
    this.#database.exec(text);
  }

  pragma(name: string): number {
    return Number(Object.values(this.all({ sql: `PRAGMA ${name}`, params: [] })[0]!)[0]);
  }

  all(statement: Statement): Row[] {
    const { prepared, params } = this.#bind(statement);
    return prepared.all(...params) as Row[];
  }

  run(statement: Statement): number {
    const { prepared, params } = this.#bind(statement);
    return Number(prepared.run(...params).changes);
  }

  /**
   * Inserts rows; if one of them exists, the whole transaction is rolled back. To undo only the statement, SQLite would
   * have to copy every page before it changes it.
   */
  insertOrRollBack({ sql, params }: Statement): void {
    let statement = this.#inserts.get(sql);
    if (!statement) {
      statement = this.#database.prepare(withPlaceholders(sql.replace(/^INSERT INTO/, 'INSERT OR ROLLBACK INTO')));
      this.#inserts.set(sql, statement);
    }
    statement.run(...params);
  }

  write(write: Write): { readonly touched: number; readonly rows: Row[] } {
    if (!write.returns) return { touched: this.run(write), rows: NO_ROWS };
    const rows = this.all(write);
    return { touched: rows.length, rows };
  }

  close(): void {
    this.#database.close();
  }

  /**
   * Closes without what SQLite does with its last connection: it would copy the write-ahead log and delete it. A connection
   * that cannot write is the last one then, and leaves both.
   */
  closeKeepingLog(file: string): void {
    const last = new DatabaseSync(file, { readOnly: true });
    try {
      last.exec('BEGIN; SELECT 1 FROM sqlite_master');
    } catch {
      // It has its lock on the file, whatever there is to read.
    }
    this.#database.close();
    last.close();
  }

  #bind({ sql, params }: Statement): { prepared: StatementSync; params: Statement['params'] } {
    let entry = this.#prepared.get(sql);
    if (!entry) {
      const usesNow = sql.includes('$now');
      const text = sql
        .replaceAll('$skipLocked', '')
        // There is one transaction at a time, so every transaction whose rows can be read has ended.
        .replaceAll('$transaction', '0')
        .replaceAll('$settled', '1')
        .replaceAll('$storeBytes', '(SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size())')
        .replaceAll('$now', `$${params.length + 1}`)
        // SQLite plans with the value of a bare parameter here, and prepares the statement again for each other value.
        .replace(/\bLIMIT \$(\d+)/g, 'LIMIT +$$$1');
      entry = { statement: this.#database.prepare(withPlaceholders(text)), usesNow };
      this.#prepared.set(sql, entry);
    }
    return { prepared: entry.statement, params: entry.usesNow ? [...params, this.#clock.now()] : params };
  }
}

const NO_ROWS: Row[] = [];

/**
 * Parameters in the spelling of SQLite. Those that are used once each and in order get no number: Node looks up the name
 * of every parameter before it binds it, and SQLite searches all numbered ones for that.
 */
function withPlaceholders(text: string): string {
  const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
  const areInOrder = numbers.every((number, index) => number === index + 1);
  return text.replace(/\$(\d+)/g, areInOrder ? '?' : '?$1');
}

/** A cached prepared statement; `usesNow` says whether the clock must be passed as an extra parameter. */
interface Prepared {
  readonly statement: StatementSync;
  readonly usesNow: boolean;
}

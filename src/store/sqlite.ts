import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Clock } from '../system/clock.ts';
import { closeFileToOthers, makePrivateFile, makePrivateFolder } from '../system/private-files.ts';
import { GroupCommit } from './group-commit.ts';
import type { CommitOutcome, Row, Statement, Unit, Write } from './sql.ts';
import { type Migration, type Store, StoreFailure, statementsFor } from './store.ts';

/** Options of the embedded store. */
interface SqliteOptions {
  /** The data folder. The store takes exclusive ownership of it. */
  readonly folder: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** If false, commits do not wait for the disk and a power failure may lose the last ones; for simulations. */
  readonly durable?: boolean;
}

/** The name of the database in the data folder. */
export const DATABASE_FILE = 'capstan.db';
/** Size of the write-ahead log, in pages, at which SQLite checkpoints it. */
const WAL_PAGES_MAX = 4_000;
const PAGE_CACHE_KIB = 32_768;
/**
 * SQLite reuses free pages, so a VACUUM pays off only if there are many of them, in number and as a share of the file.
 */
const FREE_PAGES_MIN = 1_000;
const FREE_PART_MIN = 0.25;
/** VACUUM rewrites about this many pages per second; more would block other callers for too long. */
const KEPT_PAGES_QUICK = 50_000;

/** Opens the embedded store. One process owns the data folder; a second one that tries to open it fails. */
export async function openSqlite({ folder, clock, migrations, durable = true }: SqliteOptions): Promise<Store> {
  makePrivateFolder(folder);
  const releaseFolder = lockFolder(folder);
  const file = privateDatabase(folder);
  // A transaction starts and ends within one turn of the event loop, so a single connection serves everybody: a read
  // never sees half a transaction, and finds recently written pages in the cache.
  const connection = new Connection(new DatabaseSync(file), clock);
  connection.exec(`PRAGMA journal_mode = WAL`);
  connection.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'OFF'}`);
  connection.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES_MAX}`);
  connection.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  migrate(connection, migrations, clock.now());
  reclaim(connection, Number.POSITIVE_INFINITY);
  const group = new GroupCommit(async (units) => commitGroup(connection, units), clock);
  let closed: Promise<void> | undefined;

  return {
    isShared: false,
    read: async <R>(statement: Statement) => {
      try {
        return connection.all(statement) as R[];
      } catch (error) {
        throw new StoreFailure('SQLite: the query failed.', { cause: error });
      }
    },
    commit: (unit) => group.commit(unit),
    // With a single process there is nobody to notify.
    hint: () => {},
    onHint: () => {},
    reclaim: async () => reclaim(connection, KEPT_PAGES_QUICK),
    close: () => {
      closed ??= group.drained().then(() => {
        connection.close();
        releaseFolder();
      });
      return closed;
    },
  };
}

/** The database file. SQLite gives the files that it creates beside it the same permissions. */
function privateDatabase(folder: string): string {
  const file = join(folder, DATABASE_FILE);
  makePrivateFile(file);
  for (const suffix of ['-wal', '-shm', '-journal']) closeFileToOthers(`${file}${suffix}`);
  return file;
}

/** Takes a lock that the operating system releases when the process ends, even after a crash. */
function lockFolder(folder: string): () => void {
  const file = join(folder, 'owner.lock');
  makePrivateFile(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch {
    lock.close();
    throw new StoreFailure(`Another process is using the data folder ${folder}. Stop it, or choose another folder.`);
  }
  return () => lock.close();
}

function migrate(connection: Connection, migrations: readonly Migration[], now: number): void {
  connection.exec('CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
  const applied = new Set(connection.all({ sql: 'SELECT id FROM migrations', params: [] }).map(({ id }) => id));
  for (const migration of migrations.filter(({ id }) => !applied.has(id))) {
    connection.exec('BEGIN IMMEDIATE');
    for (const statement of statementsFor('sqlite', migration)) {
      connection.exec(statement.replaceAll('$clustered', 'WITHOUT ROWID'));
    }
    connection.run({ sql: 'INSERT INTO migrations (id, applied_at) VALUES ($1, $2)', params: [migration.id, now] });
    connection.exec('COMMIT');
  }
}

/**
 * Compacts the file with VACUUM. Incremental auto-vacuum would slow every write by a tenth, so a file too large for a
 * quick VACUUM is compacted at the next start instead.
 */
function reclaim(connection: Connection, keptMax: number): void {
  const pages = connection.pragma('page_count');
  const free = connection.pragma('freelist_count');
  if (free < FREE_PAGES_MIN || free < FREE_PART_MIN * pages || pages - free > keptMax) return;
  connection.exec('VACUUM');
  // The file shrinks only when the write-ahead log is checkpointed into it.
  connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

/** Transaction control, prepared like any statement because it runs most often. */
const BEGIN: Statement = { sql: 'BEGIN IMMEDIATE', params: [] };
const COMMIT: Statement = { sql: 'COMMIT', params: [] };
const ROLLBACK: Statement = { sql: 'ROLLBACK', params: [] };
const SAVEPOINT: Statement = { sql: 'SAVEPOINT unit', params: [] };
const RELEASE: Statement = { sql: 'RELEASE unit', params: [] };
const ROLLBACK_UNIT: Statement = { sql: 'ROLLBACK TO unit', params: [] };

/** Commits units in one transaction. Each has its own savepoint, so a unit that fails is rolled back alone. */
function commitGroup(connection: Connection, units: readonly Unit[]): (CommitOutcome | Error)[] {
  try {
    connection.run(BEGIN);
    const outcomes = units.map((unit) => commitUnit(connection, unit));
    connection.run(COMMIT);
    return outcomes;
  } catch (error) {
    if (connection.isInTransaction) connection.run(ROLLBACK);
    throw new StoreFailure('SQLite: the transaction failed.', { cause: error });
  }
}

function commitUnit(connection: Connection, unit: Unit): CommitOutcome | Error {
  connection.run(SAVEPOINT);
  try {
    const rows: Row[][] = [];
    for (const write of unit) {
      const outcome = connection.write(write);
      if (write.expect !== undefined && outcome.touched !== write.expect) {
        connection.run(ROLLBACK_UNIT);
        return { committed: false, failedExpectation: write.expectation ?? '' };
      }
      if (write.returns) rows.push(outcome.rows);
    }
    return { committed: true, rows };
  } catch (error) {
    connection.run(ROLLBACK_UNIT);
    return error as Error;
  } finally {
    connection.run(RELEASE);
  }
}

/** A database handle that caches prepared statements and expands the macros of `Statement`. */
class Connection {
  readonly #database: DatabaseSync;
  readonly #clock: Clock;
  readonly #prepared = new Map<string, Prepared>();

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

  write(write: Write): { readonly touched: number; readonly rows: Row[] } {
    if (!write.returns) return { touched: this.run(write), rows: NO_ROWS };
    const rows = this.all(write);
    return { touched: rows.length, rows };
  }

  close(): void {
    this.#database.close();
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
        .replaceAll('$now', `?${params.length + 1}`)
        .replace(/\$(\d+)/g, '?$1');
      entry = { statement: this.#database.prepare(text), usesNow };
      this.#prepared.set(sql, entry);
    }
    return { prepared: entry.statement, params: entry.usesNow ? [...params, this.#clock.now()] : params };
  }
}

const NO_ROWS: Row[] = [];

/** A cached prepared statement; `usesNow` says whether the clock must be passed as an extra parameter. */
interface Prepared {
  readonly statement: StatementSync;
  readonly usesNow: boolean;
}

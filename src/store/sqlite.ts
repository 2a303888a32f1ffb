import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Clock } from '../system/clock.ts';
import { GroupCommit } from './group-commit.ts';
import type { CommitOutcome, Row, Statement, Unit, Write } from './sql.ts';
import { type Migration, type Store, StoreFailure, statementsFor } from './store.ts';

export interface SqliteOptions {
  /** Folder that the store owns. */
  readonly folder: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** Off only where losing the last moments to a power cut does not matter, as in simulations. */
  readonly durable?: boolean;
}

const WAL_PAGES_MAX = 4_000;
const PAGE_CACHE_KIB = 32_768;
/** Free pages are soon used again, so the file is written anew only when many are free, and a good part of it. */
const FREE_PAGES_MIN = 1_000;
const FREE_PART_MIN = 0.25;
/** So many are written anew in about a second. */
const KEPT_PAGES_QUICK = 50_000;

/** One file, one owner, one process. */
export async function openSqlite({ folder, clock, migrations, durable = true }: SqliteOptions): Promise<Store> {
  mkdirSync(folder, { recursive: true });
  const releaseFolder = ownFolder(folder);
  const file = join(folder, 'capstan.db');
  // Transactions are over within one turn, so one connection serves all: a read never sees half of one, and finds the
  // pages in memory that the last write left there.
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
    kind: 'sqlite',
    read: async <R>(statement: Statement) => {
      try {
        return connection.all(statement) as R[];
      } catch (error) {
        throw new StoreFailure('The store could not be read.', { cause: error });
      }
    },
    commit: (unit) => group.commit(unit),
    // The one process that there is hears of everything by itself.
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

/** Holds a lock that the operating system lets go of when the process ends, however it ends. */
function ownFolder(folder: string): () => void {
  const lock = new DatabaseSync(join(folder, 'owner.lock'), { timeout: 0 });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch {
    lock.close();
    throw new StoreFailure(`Another process owns the data folder ${folder}. Stop it, or give this one its own folder.`);
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
 * Writes the file anew without its free pages. Bookkeeping that would let it shrink bit by bit costs every write a
 * tenth, so what takes too long for that while others wait is left for the next start.
 */
function reclaim(connection: Connection, keptMax: number): void {
  const pages = connection.pragma('page_count');
  const free = connection.pragma('freelist_count');
  if (free < FREE_PAGES_MIN || free < FREE_PART_MIN * pages || pages - free > keptMax) return;
  connection.exec('VACUUM');
  // The file itself becomes shorter when what was written ahead of it goes into it.
  connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

/** Transaction control, prepared like any statement: it runs more often than anything else. */
const BEGIN: Statement = { sql: 'BEGIN IMMEDIATE', params: [] };
const COMMIT: Statement = { sql: 'COMMIT', params: [] };
const ROLLBACK: Statement = { sql: 'ROLLBACK', params: [] };
const SAVEPOINT: Statement = { sql: 'SAVEPOINT unit', params: [] };
const RELEASE: Statement = { sql: 'RELEASE unit', params: [] };
const UNDO: Statement = { sql: 'ROLLBACK TO unit', params: [] };

/** One transaction; a unit that breaks an expectation, or fails, is taken out of it alone. */
function commitGroup(connection: Connection, units: readonly Unit[]): (CommitOutcome | Error)[] {
  try {
    connection.run(BEGIN);
    const outcomes = units.map((unit) => commitUnit(connection, unit));
    connection.run(COMMIT);
    return outcomes;
  } catch (error) {
    if (connection.isInTransaction) connection.run(ROLLBACK);
    throw new StoreFailure('The store could not commit.', { cause: error });
  }
}

function commitUnit(connection: Connection, unit: Unit): CommitOutcome | Error {
  connection.run(SAVEPOINT);
  try {
    const rows: Row[][] = [];
    for (const write of unit) {
      const outcome = connection.write(write);
      if (write.expect !== undefined && outcome.touched !== write.expect) {
        connection.run(UNDO);
        return { committed: false, broke: write.keeps ?? '' };
      }
      if (write.returns) rows.push(outcome.rows);
    }
    return { committed: true, rows };
  } catch (error) {
    connection.run(UNDO);
    return error as Error;
  } finally {
    connection.run(RELEASE);
  }
}

/** A database handle that prepares each statement once. */
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
        // One transaction at a time: whatever can be read is over.
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

interface Prepared {
  readonly statement: StatementSync;
  readonly usesNow: boolean;
}

import { copyFileSync, existsSync, statfsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import type { Meter } from '../system/meter.ts';
import { makePrivateFolder } from '../system/private-files.ts';
import { GroupCommit } from './group-commit.ts';
import { checksumOf, planMigrations } from './migrations.ts';
import { isShareable, SharedWrites } from './shared-writes.ts';
import type { CommitOutcome, Row, Statement, Unit, Write } from './sql.ts';
import { backUp } from './sqlite-backup.ts';
import { Connection, isDamage, isOfTheStore } from './sqlite-connection.ts';
import { lockFolder, privateDatabase } from './sqlite-folder.ts';
import { DatabaseFileGuard, type DatabaseGuard, NO_GUARD } from './sqlite-guard.ts';
import { isFailedSync, markUnsynced, renewUnsynced } from './sqlite-renewal.ts';
import { lostInWal } from './sqlite-wal.ts';
import { type Migration, type Store, StoreFailure, statementsFor } from './store.ts';
import type { FlushFile } from './wal-flush.ts';

/** Options of the embedded store. */
interface SqliteOptions {
  /** The data folder. The store takes exclusive ownership of it. */
  readonly folder: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** Where damage, and housekeeping that failed, is reported. */
  readonly log?: Pick<Log, 'warn' | 'error'> | undefined;
  /** Where transactions are counted. */
  readonly meter?: Meter | undefined;
  /** How files get to the disk; tests delay it and let it fail. */
  readonly flushFile?: FlushFile;
}

const PAGE_CACHE_KIB = 32_768;
/**
 * SQLite reuses free pages, so a VACUUM pays off only if there are many of them, in number and as a share of the file.
 */
const FREE_PAGES_MIN = 1_000;
const FREE_PART_MIN = 0.25;
/** VACUUM rewrites about this many pages per second; more would block other callers for too long. */
const KEPT_PAGES_QUICK = 50_000;
/** VACUUM copies what is kept twice, into a temporary file and into the write-ahead log; and others need room too. */
const COPIES_OF_VACUUM = 3;
/** Files up to this many pages are checked whole at each start, which takes about a second at most. */
const CHECKED_PAGES_MAX = 100_000;

/** Opens the embedded store. One process owns the data folder; a second one that tries to open it fails. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { folder } = options;
  makePrivateFolder(folder);
  const releaseFolder = lockFolder(folder);
  try {
    const file = privateDatabase(folder);
    reportLostFrames(`${file}-wal`, options);
    await renewUnsynced(file, options);
    return openFile(file, options, releaseFolder);
  } catch (error) {
    releaseFolder();
    throw isDamage(error) ? damaged(folder, error) : error;
  }
}

function openFile(file: string, options: SqliteOptions, releaseFolder: () => void): Store {
  const hasLeftLog = existsSync(`${file}-wal`);
  const connection = connect(file, options.clock);
  try {
    prepare(connection, options, hasLeftLog);
    const guard = new DatabaseFileGuard(connection, file, options);
    // From here on the guard flushes what is committed.
    connection.exec('PRAGMA synchronous = NORMAL');
    const compact = (): void => reclaim(connection, options, KEPT_PAGES_QUICK);
    const close = (keepsLog: boolean): void => {
      if (keepsLog) connection.closeKeepingLog(file);
      else connection.close();
    };
    return {
      ...storeOn(connection, guard, { ...options, compact, close, release: releaseFolder }),
      stopped: guard.stopped,
      backup: (target) => backUp(file, target, () => guard.settled()),
    };
  } catch (error) {
    if (isFailedSync(error)) {
      markUnsynced(file, options.log);
      connection.closeKeepingLog(file);
    } else connection.close();
    throw error;
  }
}

/** Opens an embedded store without a file, for simulations and tests of services: closing it forgets everything. */
export async function openInMemory(options: Pick<SqliteOptions, 'clock' | 'migrations'>): Promise<Store> {
  const connection = connect(':memory:', options.clock);
  migrate(connection, options.migrations, options.clock.now());
  return storeOn(connection, NO_GUARD, {
    ...options,
    compact: () => {},
    close: () => connection.close(),
    release: () => {},
  });
}

/**
 * A transaction starts and ends within one turn of the event loop, so a single connection serves everybody: a read never
 * sees half a transaction, and finds recently written pages in the cache.
 */
function connect(file: string, clock: Clock): Connection {
  return new Connection(new DatabaseSync(file), clock);
}

function prepare(connection: Connection, { folder, clock, migrations, log }: SqliteOptions, hasLeftLog: boolean): void {
  connection.exec('PRAGMA journal_mode = WAL');
  // SQLite flushes by itself for as long as nobody waits for its commits.
  connection.exec('PRAGMA synchronous = FULL');
  // A checkpoint within a commit would hide that the database could not be flushed.
  connection.exec('PRAGMA wal_autocheckpoint = 0');
  connection.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  if (hasLeftLog) checkpointLeftLog(connection, log);
  checkPages(connection, folder);
  migrate(connection, migrations, clock.now());
  reclaim(connection, { folder, log }, Number.POSITIVE_INFINITY);
}

/**
 * Copies the log that an earlier process left into the database, before anything is built on it: what that process could
 * not flush may be in the system's memory alone, where it is taken for written.
 */
function checkpointLeftLog(connection: Connection, log: SqliteOptions['log']): void {
  try {
    const [row] = connection.all({ sql: 'PRAGMA wal_checkpoint(TRUNCATE)', params: [] });
    if (row?.busy !== 0) throw new Error('another program has the database open');
  } catch (error) {
    if (isFailedSync(error) || isDamage(error)) throw error;
    log?.warn(
      { err: error },
      'the write-ahead log of the last start could not be copied into the database; it is kept',
    );
  }
}

interface StoreParts extends Pick<SqliteOptions, 'clock' | 'meter'> {
  /** Gives free space back, if that is quick. */
  readonly compact: () => void;
  /** With `keepsLog`, the write-ahead log is neither copied into the database nor deleted. */
  readonly close: (keepsLog: boolean) => void;
  /** Called last. */
  readonly release: () => void;
}

function storeOn(
  connection: Connection,
  guard: DatabaseGuard,
  { clock, meter, compact, close, release }: StoreParts,
): Store {
  const group = new GroupCommit(
    async (units) => {
      guard.check();
      const outcomes = commitGroup(connection, guard, units);
      const isWritten = outcomes.some((outcome) => 'committed' in outcome && outcome.committed);
      await guard.afterCommit(isWritten);
      return outcomes;
    },
    clock,
    meter,
  );
  let closed: Promise<void> | undefined;
  return {
    kind: 'sqlite',
    isShared: false,
    read: async <R>(statement: Statement) => {
      guard.beforeRead();
      const rows = query<R>(connection, statement);
      await guard.settled();
      return rows;
    },
    commit: (unit, { tenant } = {}) => group.commit(unit, tenant),
    // With a single process there is nobody to notify.
    hint: () => {},
    onHint: () => {},
    reclaim: async () => {
      guard.check();
      // What is written during a flush is neither flushed by it nor known to be missing.
      await guard.settled();
      try {
        compact();
      } catch (error) {
        await guard.noteFailure(error);
        throw new StoreFailure('SQLite: the file could not be compacted.', { cause: error });
      }
    },
    close: () => {
      closed ??= group.drained().then(async () => {
        close(await guard.end());
        await guard.close();
        release();
      });
      return closed;
    },
  };
}

function query<R>(connection: Connection, statement: Statement): R[] {
  try {
    return connection.all(statement) as R[];
  } catch (error) {
    throw new StoreFailure('SQLite: the query failed.', { cause: error });
  }
}

/** SQLite would go on without a word; what it leaves out is kept for whoever wants to look into it. */
function reportLostFrames(wal: string, { log }: SqliteOptions): void {
  const lost = lostInWal(wal);
  if (!lost) return;
  const kept = `${wal}.damaged`;
  copyFileSync(wal, kept);
  log?.error(
    { ...lost, kept },
    'the write-ahead log is damaged: acknowledged transactions are lost. Compare these runs with the last backup and the audit anchors',
  );
}

function damaged(folder: string, error: unknown): StoreFailure {
  return new StoreFailure(
    `The store in ${folder} is damaged: ${(error as Error).message}. Copy the folder before anything else, run \`capstan verify --data ${folder}\` to see which runs are affected, and restore the last backup.`,
    { cause: error },
  );
}

/** Reads every page of a file that is not too large for that, so that damage is found before anything builds on it. */
function checkPages(connection: Connection, folder: string): void {
  if (connection.pragma('page_count') > CHECKED_PAGES_MAX) return;
  const [row] = connection.all({ sql: 'PRAGMA quick_check(1)', params: [] });
  const { quick_check: finding } = row ?? {};
  if (finding !== 'ok') throw damaged(folder, new Error(String(finding)));
}

function migrate(connection: Connection, migrations: readonly Migration[], now: number): void {
  connection.exec(
    'CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL, checksum TEXT)',
  );
  const columns = connection.all({ sql: 'PRAGMA table_info(migrations)', params: [] }).map(({ name }) => name);
  if (!columns.includes('checksum')) connection.exec('ALTER TABLE migrations ADD COLUMN checksum TEXT');
  const applied = connection
    .all({ sql: 'SELECT id, checksum FROM migrations', params: [] })
    .map(({ id, checksum }) => ({ id: String(id), checksum: checksum === null ? null : String(checksum) }));
  const plan = planMigrations('sqlite', migrations, applied);
  for (const migration of plan.missing) {
    connection.exec('BEGIN IMMEDIATE');
    for (const statement of statementsFor('sqlite', migration)) {
      connection.exec(statement.replaceAll('$clustered', 'WITHOUT ROWID'));
    }
    connection.run({
      sql: 'INSERT INTO migrations (id, applied_at, checksum) VALUES ($1, $2, $3)',
      params: [migration.id, now, checksumOf('sqlite', migration)],
    });
    connection.exec('COMMIT');
  }
  for (const migration of plan.withoutChecksum) {
    connection.run({
      sql: 'UPDATE migrations SET checksum = $1 WHERE id = $2',
      params: [checksumOf('sqlite', migration), migration.id],
    });
  }
}

/**
 * Compacts the file with VACUUM. Incremental auto-vacuum would slow every write by a tenth, so a file too large for a
 * quick VACUUM is compacted at the next start instead. A disk without room for it is no reason not to start.
 */
function reclaim(
  connection: Connection,
  { folder, log }: Pick<SqliteOptions, 'folder' | 'log'>,
  keptMax: number,
): void {
  const pages = connection.pragma('page_count');
  const free = connection.pragma('freelist_count');
  if (free < FREE_PAGES_MIN || free < FREE_PART_MIN * pages || pages - free > keptMax) return;
  try {
    const needed = COPIES_OF_VACUUM * (pages - free) * connection.pragma('page_size');
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize < needed) throw new Error(`it needs ${needed} bytes of free disk space`);
    connection.exec('VACUUM');
    // The file shrinks only when the write-ahead log is checkpointed into it.
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch (error) {
    if (isDamage(error) || isFailedSync(error)) throw error;
    log?.warn({ err: error, pages, free }, 'the database file could not be compacted and keeps its size');
  }
}

/** Transaction control, prepared like any statement because it runs most often. */
const BEGIN: Statement = { sql: 'BEGIN IMMEDIATE', params: [] };
const COMMIT: Statement = { sql: 'COMMIT', params: [] };
const ROLLBACK: Statement = { sql: 'ROLLBACK', params: [] };
const SAVEPOINT: Statement = { sql: 'SAVEPOINT unit', params: [] };
const RELEASE: Statement = { sql: 'RELEASE unit', params: [] };
const ROLLBACK_UNIT: Statement = { sql: 'ROLLBACK TO unit', params: [] };

/**
 * Commits units in one transaction, without savepoints at first: nearly always all of them succeed. If one fails when
 * a part of it is written, the transaction is undone and made again with a savepoint for each, so that it fails alone.
 */
function commitGroup(connection: Connection, guard: DatabaseGuard, units: readonly Unit[]): Outcomes {
  try {
    return transact(connection, guard, units, applyTogether) ?? transact(connection, guard, units, applyApart)!;
  } catch (error) {
    if (connection.isInTransaction) connection.run(ROLLBACK);
    throw error instanceof StoreFailure ? error : new StoreFailure('SQLite: the transaction failed.', { cause: error });
  }
}

type Outcomes = (CommitOutcome | Error)[];

/** Undefined, and nothing written, if `applyUnits` gives up. */
function transact(
  connection: Connection,
  guard: DatabaseGuard,
  units: readonly Unit[],
  applyUnits: (connection: Connection, units: readonly Unit[]) => Outcomes | undefined,
): Outcomes | undefined {
  connection.run(BEGIN);
  guard.inTransaction();
  const outcomes = applyUnits(connection, units);
  if (outcomes) connection.run(COMMIT);
  // A full disk, or a shared insert of a row that exists, has ended the transaction already.
  else if (connection.isInTransaction) connection.run(ROLLBACK);
  return outcomes;
}

/** Undefined if a unit fails when a part of it may be written. */
function applyTogether(connection: Connection, units: readonly Unit[]): Outcomes | undefined {
  const outcomes: CommitOutcome[] = [];
  const together = new SharedWrites();
  try {
    for (const unit of units) {
      const { outcome, isUnwritten } = applyWrites(
        connection,
        unit.filter((write) => !isShareable(write)),
      );
      if (!outcome.committed && !isUnwritten) return undefined;
      outcomes.push(outcome);
      // What a refused unit shares with others is left out.
      if (outcome.committed) for (const write of unit) together.add(write);
    }
    for (const write of together.inserts()) connection.insertOrRollBack(write);
    for (const write of together.counts()) connection.run(write);
    return outcomes;
  } catch {
    return undefined;
  }
}

function applyApart(connection: Connection, units: readonly Unit[]): Outcomes {
  return units.map((unit) => applyUndoable(connection, unit));
}

/** Undoes the unit alone if it fails. */
function applyUndoable(connection: Connection, unit: Unit): CommitOutcome | Error {
  connection.run(SAVEPOINT);
  try {
    const { outcome } = applyWrites(connection, unit);
    if (!outcome.committed) connection.run(ROLLBACK_UNIT);
    return outcome;
  } catch (error) {
    connection.run(ROLLBACK_UNIT);
    return isOfTheStore(error) ? new StoreFailure('SQLite: a statement failed.', { cause: error }) : (error as Error);
  } finally {
    connection.run(RELEASE);
  }
}

/** Makes writes up to the first whose expectation fails. */
function applyWrites(
  connection: Connection,
  writes: readonly Write[],
): { readonly outcome: CommitOutcome; readonly isUnwritten: boolean } {
  const rows: Row[][] = [];
  for (const write of writes) {
    const { touched, rows: found } = connection.write(write);
    if (write.expect !== undefined && touched !== write.expect) {
      const outcome = { committed: false, failedExpectation: write.expectation ?? '' } as const;
      return { outcome, isUnwritten: write === writes[0] && touched === 0 };
    }
    if (write.returns) rows.push(found);
  }
  return { outcome: { committed: true, rows }, isUnwritten: false };
}

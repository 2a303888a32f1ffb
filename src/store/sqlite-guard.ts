import { randomUUID } from 'node:crypto';
import type { Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import type { Connection } from './sqlite-connection.ts';
import { FileGuard } from './sqlite-folder.ts';
import { StoreFailure } from './store.ts';
import { WalCheckpoints } from './wal-checkpoints.ts';
import { type FlushFile, WalFlush } from './wal-flush.ts';

/** What makes sure that the database file is there, is ours and is on the disk, at each step of a read or a commit. */
export interface DatabaseGuard {
  /** Throws while something is committed that the disk does not have. */
  check(): void;
  /** Throws as well if the file is no longer ours or there. */
  beforeRead(): void;
  /** Throws if another process has taken the store over; to be called in a transaction. */
  inTransaction(): void;
  /** Settles when what the transaction wrote, if anything, is on the disk. */
  afterCommit(isWritten: boolean): Promise<void> | undefined;
  /** Settles when what was read is on the disk. */
  settled(): Promise<void> | undefined;
  /** To be called with an error of something that has copied the write-ahead log into the database. */
  noteFailure(error: unknown): Promise<void>;
  /** To be called before the database is closed. True if the write-ahead log must be kept: not all of it is on the disk. */
  end(): Promise<boolean>;
  /** To be called when the database is closed, by the owner of its folder. */
  close(): Promise<void>;
}

/** The guard of a database in memory: nothing to check. */
export const NO_GUARD: DatabaseGuard = {
  check: () => {},
  beforeRead: () => {},
  inTransaction: () => {},
  afterCommit: () => undefined,
  settled: () => undefined,
  noteFailure: async () => {},
  end: async () => false,
  close: async () => {},
};

/** What guarding a database file needs. */
interface GuardOptions {
  readonly clock: Clock;
  readonly log?: Pick<Log, 'warn' | 'error'> | undefined;
  readonly flushFile?: FlushFile | undefined;
}

/** Guards a database file that the process owns, once it has its write-ahead log. */
export class DatabaseFileGuard implements DatabaseGuard {
  /** Settles when only a new start may go on, with the reason. */
  readonly stopped: Promise<StoreFailure>;
  readonly #clock: Clock;
  readonly #ownership: Ownership;
  readonly #file: FileGuard;
  readonly #wal: WalFlush;
  readonly #checkpoints: WalCheckpoints;

  constructor(connection: Connection, file: string, { clock, log, flushFile }: GuardOptions) {
    const { promise, resolve: onStop } = Promise.withResolvers<StoreFailure>();
    this.stopped = promise;
    this.#clock = clock;
    this.#ownership = new Ownership(connection);
    this.#file = new FileGuard(file);
    this.#wal = new WalFlush(`${file}-wal`, { clock, flushFile, onStop });
    const checkLog = (): void => this.#wal.check();
    this.#checkpoints = new WalCheckpoints(file, connection, { clock, log, flushFile, checkLog, onStop });
  }

  check(): void {
    this.#wal.check();
    this.#checkpoints.check();
  }

  beforeRead(): void {
    this.check();
    this.#ownership.checkKnown();
    this.#file.checkSometimes(this.#clock.now());
  }

  inTransaction(): void {
    this.#ownership.check();
  }

  async afterCommit(isWritten: boolean): Promise<void> {
    if (isWritten) await this.#wal.flush();
    // After the commit, and before anybody is told: what went into a deleted file is not acknowledged.
    this.#file.check();
    this.#checkpoints.afterCommit(this.#wal.pages);
  }

  settled(): Promise<void> {
    return this.#wal.settled();
  }

  noteFailure(error: unknown): Promise<void> {
    return this.#checkpoints.noteFailure(error);
  }

  async end(): Promise<boolean> {
    await this.#checkpoints.end();
    try {
      this.check();
      return false;
    } catch {
      return true;
    }
  }

  async close(): Promise<void> {
    this.#wal.close();
    await this.#checkpoints.close();
  }
}

/**
 * The owner's name in the database itself. The lock file can be deleted, and then a second process can take the folder:
 * that one writes its name, and every later transaction of the first is refused.
 */
class Ownership {
  readonly #connection: Connection;
  readonly #token = randomUUID();
  /** What SQLite calls the state that other connections have left the database in. */
  #version: number;
  #isLost = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.exec('CREATE TABLE IF NOT EXISTS store_owner (one INTEGER PRIMARY KEY, token TEXT NOT NULL)');
    connection.run({ sql: 'INSERT OR REPLACE INTO store_owner (one, token) VALUES (1, $1)', params: [this.#token] });
    this.#version = connection.pragma('data_version');
  }

  /** Throws if another process has taken the store over; to be called in a transaction. */
  check(): void {
    const version = this.#connection.pragma('data_version');
    if (version !== this.#version) {
      const [row] = this.#connection.all({ sql: 'SELECT token FROM store_owner', params: [] });
      this.#isLost = row?.token !== this.#token;
      this.#version = version;
    }
    this.checkKnown();
  }

  /** Throws if a check has found out. */
  checkKnown(): void {
    if (!this.#isLost) return;
    throw new StoreFailure(
      'SQLite: another process has taken over the data folder, because owner.lock was deleted. Nothing is written any more. Stop this host.',
    );
  }
}

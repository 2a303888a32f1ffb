import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Cancel, Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import type { Statement } from './sql.ts';
import type { Connection } from './sqlite-connection.ts';
import { isFailedSync, markUnsynced } from './sqlite-renewal.ts';
import { StoreFailure } from './store.ts';
import { type FlushFile, flushToDisk } from './wal-flush.ts';

/** Pages of the write-ahead log at which they are copied into the database. */
const PAGES_MAX = 4_000;
/** Pages at which they are copied between two commits: only if the thread does not get to it. */
const PAGES_WITHOUT_THREAD = 4 * PAGES_MAX;
/** A thread that has had nothing to do for so long is ended, because it takes some megabytes. */
const IDLE_MS = 60_000;
/** How long a database that could not be copied to is left alone. */
const RETRY_MS = 10_000;

const STOPPED =
  'SQLite: the database (capstan.db) could not be flushed to the disk, so the store has stopped. The write-ahead log still has what it lacks. Check the disk, then restart the host.';

const CHECKPOINT: Statement = { sql: 'PRAGMA wal_checkpoint(PASSIVE)', params: [] };

/**
 * Copies what it can without waiting for anybody, with a connection of its own, each time that it is asked. It opens the
 * log before it says that it is there: from then on it hears itself of a flush that fails.
 */
const COPYING = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(workerData);
  database.exec('PRAGMA synchronous = NORMAL; SELECT 1 FROM sqlite_master');
  parentPort.on('message', (request) => {
    if (request === 'end') {
      database.close();
      parentPort.close();
      return;
    }
    try {
      database.exec('${CHECKPOINT.sql}');
      parentPort.postMessage({});
    } catch ({ message, errcode }) {
      parentPort.postMessage({ failure: { message, errcode } });
    }
  });
  parentPort.postMessage('ready');
`;

/** What the thread answers when it has copied. */
interface Copied {
  readonly failure?: { readonly message: string; readonly errcode?: number };
}

/** What checkpoints are made with, and who is told that the database could not be flushed. */
interface CheckpointOptions {
  readonly clock: Pick<Clock, 'after' | 'now'>;
  readonly log?: Pick<Log, 'warn' | 'error'> | undefined;
  readonly flushFile?: FlushFile | undefined;
  /** Throws while the log has something that could not be flushed: it must not be copied. */
  readonly checkLog: () => void;
  /** Called once, when only a new start may go on. */
  readonly onStop: (failure: StoreFailure) => void;
}

/**
 * Copies the write-ahead log into the database when it has become long. Within a commit, as SQLite does it, the event loop
 * would stand still for twenty milliseconds, most of which the disk needs. So a thread copies the pages while commits go
 * on, the thread pool flushes the database file, and the few pages that were added meanwhile are copied between two
 * commits: with them the copy is complete, and the log begins anew.
 *
 * The order is SQLite's: the log is on the disk before a page is copied, and the database before the log begins anew. What
 * a flush of the database could not write, the system may drop, also when it is written again (`sqlite-renewal.ts`). So
 * then the store stops: a new start takes all pages from the log, into a new file.
 */
export class WalCheckpoints {
  readonly #path: string;
  readonly #file: number;
  readonly #connection: Connection;
  readonly #options: CheckpointOptions;
  #thread: Worker | undefined;
  #cancelEnd: Cancel = () => {};
  #retryAt = 0;
  /** Settles when the thread has copied; set until the copy is complete. */
  #copying: Promise<void> | undefined;
  /** Whether only the pages are left that were added since. */
  #isCopied = false;
  #failure: StoreFailure | undefined;

  constructor(path: string, connection: Connection, options: CheckpointOptions) {
    this.#path = path;
    // Kept open: closing any descriptor of this file would release the locks that SQLite has on it.
    this.#file = openSync(path, 'r');
    this.#connection = connection;
    this.#options = options;
  }

  /** Throws if the disk does not have what was copied. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** To be called when a commit is on the disk, with the pages that the log has. */
  afterCommit(pages: number): void {
    if (this.#failure) return;
    if (this.#isCopied) this.#complete();
    else if (!this.#copying && pages >= PAGES_MAX && this.#options.clock.now() >= this.#retryAt) {
      this.#copying = this.#copy().catch((error: unknown) => this.#giveUp(error));
    } else if (!this.#copying && pages >= PAGES_WITHOUT_THREAD) this.#complete();
  }

  /**
   * To be called with an error of something that has copied the log. SQLite does not say whether the log or the database
   * could not be flushed; but Linux reports such an error once to each open descriptor of the file, so a flush of ours
   * tells whether it was the database.
   */
  async noteFailure(error: unknown): Promise<void> {
    if (isFailedSync(error)) await this.#flush();
  }

  /** Ends the thread. To be called before the database is closed, so that SQLite tidies up after its last connection. */
  async end(): Promise<void> {
    await this.#copying;
    await this.#endThread();
  }

  /** Closes the file. The database must be closed before: SQLite does not say if its last copy could not be flushed. */
  async close(): Promise<void> {
    await this.#flush();
    closeSync(this.#file);
  }

  async #copy(): Promise<void> {
    this.#cancelEnd();
    this.#thread ??= await startThread(this.#path);
    this.#options.checkLog();
    const [{ failure }] = (await answerOf(this.#thread, 'copy', 'message')) as [Copied];
    if (failure) throw Object.assign(new Error(failure.message), failure);
    await this.#flush();
    this.#isCopied = this.#failure === undefined;
  }

  /** Only a database that the disk took counts as copied; if it did not, the store stops. */
  async #flush(): Promise<void> {
    const { flushFile = flushToDisk } = this.#options;
    try {
      await flushFile(this.#file);
    } catch (error) {
      this.#stop(error);
    }
  }

  #complete(): void {
    this.#isCopied = false;
    try {
      this.#connection.all(CHECKPOINT);
      this.#copying = undefined;
    } catch (error) {
      this.#copying = this.#giveUp(error);
    }
    this.#cancelEnd();
    this.#cancelEnd = this.#options.clock.after(IDLE_MS, () => void this.#endThread());
  }

  #stop(cause: unknown): void {
    if (this.#failure) return;
    const { log, onStop } = this.#options;
    markUnsynced(this.#path, log);
    this.#failure = new StoreFailure(STOPPED, { cause });
    onStop(this.#failure);
  }

  async #giveUp(error: unknown): Promise<void> {
    await this.noteFailure(error);
    this.#retryLater(error);
    await this.#endThread();
    this.#copying = undefined;
  }

  /** The log stays as it is, and is copied later. */
  #retryLater(error: unknown): void {
    if (this.#failure) return;
    const { clock, log } = this.#options;
    this.#retryAt = clock.now() + RETRY_MS;
    log?.warn({ err: error }, 'the WAL checkpoint failed; the write-ahead log grows until one succeeds');
  }

  async #endThread(): Promise<void> {
    const thread = this.#thread;
    this.#cancelEnd();
    this.#thread = undefined;
    if (!thread || thread.threadId === ENDED) return;
    // One that fails has ended, too.
    await answerOf(thread, 'end', 'exit').catch(() => {});
  }
}

/** The id of a thread that has ended. */
const ENDED = -1;

async function startThread(path: string): Promise<Worker> {
  const thread = new Worker(COPYING, { eval: true, workerData: path, execArgv: [] });
  await once(thread, 'message');
  return thread;
}

/** Asks a thread for something; only until it answers does it keep the process running. */
async function answerOf(thread: Worker, request: string, event: string): Promise<unknown[]> {
  thread.ref();
  const answer = once(thread, event);
  thread.postMessage(request);
  const found = await answer;
  thread.unref();
  return found;
}

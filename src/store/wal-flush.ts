import { closeSync, fdatasync, openSync, readFileSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Clock } from '../system/clock.ts';
import { wholeWal } from './sqlite-wal.ts';
import { StoreFailure } from './store.ts';

/** Writes what the system holds of an open file to the disk. */
export type FlushFile = (file: number) => Promise<void>;

/**
 * Flushes SQLite's write-ahead log on the thread pool, so that the event loop goes on while the disk works. The
 * database itself runs with `synchronous = NORMAL`: it flushes the log only before a checkpoint copies from it, which
 * keeps the file consistent; that commits survive a power failure is what this flush is for.
 */
export class WalFlush {
  readonly #path: string;
  readonly #file: number;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #flushFile: FlushFile;
  #inFlight: Promise<void> | undefined;
  #failure: { readonly error: StoreFailure; readonly at: number } | undefined;

  /** Opens the log of a database in which something has been written. */
  constructor(path: string, clock: Pick<Clock, 'now'>, flushFile: FlushFile = promisify(fdatasync)) {
    this.#path = path;
    this.#file = openSync(path, 'r+');
    this.#clock = clock;
    this.#flushFile = flushFile;
  }

  /** Settles once everything that was committed before this call is on the disk. */
  async flush(): Promise<void> {
    this.#inFlight = this.#flushFile(this.#file);
    try {
      await this.#inFlight;
      this.#failure = undefined;
    } catch (error) {
      throw this.#fail(FAILED, error);
    } finally {
      this.#inFlight = undefined;
    }
  }

  /** Settles when what was read before this call is on the disk: nobody sees a commit that a power failure may undo. */
  async settled(): Promise<void> {
    if (!this.#inFlight) return;
    await this.#inFlight.catch(() => {});
    if (this.#failure) throw this.#failure.error;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * Tries to go on after a flush that failed; throws while that is not possible. The system may have dropped what it
   * could not write, and would report success the next time without having written it. So the whole log is written again
   * before it is flushed; and if it is no longer what SQLite has written, only a restart, which recovers from what is
   * there, may go on.
   */
  async mend(): Promise<void> {
    const { at, error } = this.#failure!;
    if (this.#inFlight || this.#clock.now() - at < RETRY_MS) throw error;
    try {
      const log = wholeWal(readFileSync(this.#path), readFileSync(this.#path.replace(/-wal$/, '-shm')));
      if (!log) throw this.#fail(LOST, error.cause);
      writeSync(this.#file, log, 0, log.length, 0);
    } catch (reason) {
      throw reason instanceof StoreFailure ? reason : this.#fail(FAILED, reason);
    }
    await this.flush();
  }

  /** Closes the file; nothing may be in flight. */
  close(): void {
    closeSync(this.#file);
  }

  #fail(message: string, cause: unknown): StoreFailure {
    const error = new StoreFailure(message, { cause });
    this.#failure = { error, at: this.#clock.now() };
    return error;
  }
}

/** How long a disk that failed is left alone. */
const RETRY_MS = 500;
const FAILED =
  'SQLite: the disk did not take what was written. Nothing is acknowledged until it does; the host goes on by itself.';
const LOST = 'SQLite: the disk lost what was written, so the store has stopped. Check the disk, then restart the host.';

import { closeSync, fdatasync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Clock, sleep } from '../system/clock.ts';
import { framesIn, INDEX_HEADER_BYTES, readableWal, wholeWal } from './sqlite-wal.ts';
import { StoreFailure } from './store.ts';

/** Writes what the system holds of an open file to the disk. */
export type FlushFile = (file: number) => Promise<void>;

/** How a host flushes; tests delay it and let it fail. */
export const flushToDisk: FlushFile = promisify(fdatasync);

/**
 * Flushes SQLite's write-ahead log on the thread pool, so that the event loop goes on while the disk works. The
 * database itself runs with `synchronous = NORMAL`: it flushes the log only before a checkpoint copies from it, which
 * keeps the file consistent; that commits survive a power failure is what this flush is for.
 *
 * After a flush that failed, the system may have dropped what it could not write, and would report success the next time
 * without having written it. So the log is written again before it is flushed again, and its commits wait meanwhile: they
 * are either acknowledged and announced like any other, or the store stops.
 */
export class WalFlush {
  readonly #path: string;
  readonly #file: number;
  readonly #index: number;
  readonly #clock: Clock;
  readonly #flushFile: FlushFile;
  #attempt: Promise<void> | undefined;
  #failure: StoreFailure | undefined;

  /** Opens the log of a database in which something has been written. */
  constructor(path: string, clock: Clock, flushFile = flushToDisk) {
    this.#path = path;
    this.#file = openSync(path, 'r+');
    // Kept open: closing any descriptor of this file would release the locks that SQLite has on it.
    this.#index = openSync(path.replace(/-wal$/, '-shm'), 'r');
    this.#clock = clock;
    this.#flushFile = flushFile;
  }

  /** Settles once everything that was committed before this call is on the disk, also after a passing error of the disk. */
  async flush(): Promise<void> {
    try {
      await this.#try();
    } catch (error) {
      this.#failure = new StoreFailure(FAILED, { cause: error });
      await this.#flushAgain(error);
    }
  }

  /** How many pages the log has. */
  get pages(): number {
    return framesIn(this.#readIndex());
  }

  /** Throws while something is committed that the disk does not have. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** Settles when what was read before this call is on the disk: nobody sees a commit that a power failure may undo. */
  async settled(): Promise<void> {
    if (!this.#attempt) return;
    await this.#attempt.catch(() => {});
    this.check();
  }

  /** Closes the files. The database must be closed before. */
  close(): void {
    closeSync(this.#file);
    closeSync(this.#index);
  }

  async #try(): Promise<void> {
    this.#attempt = this.#flushFile(this.#file);
    try {
      await this.#attempt;
    } finally {
      this.#attempt = undefined;
    }
  }

  async #flushAgain(first: unknown): Promise<void> {
    const giveUpAt = this.#clock.now() + PATIENCE_MS;
    let cause = first;
    while (this.#clock.now() < giveUpAt) {
      await sleep(this.#clock, RETRY_MS);
      let isLost = false;
      try {
        const log = wholeWal(readFileSync(this.#path), this.#readIndex());
        isLost = !log;
        if (log) return await this.#write(log);
      } catch (error) {
        cause = error;
      }
      if (isLost) this.#stop(LOST, cause);
    }
    this.#stop(GIVEN_UP, cause);
  }

  async #write(log: Buffer): Promise<void> {
    writeWhole(this.#file, log);
    await this.#try();
    this.#failure = undefined;
  }

  #readIndex(): Buffer {
    const header = Buffer.alloc(INDEX_HEADER_BYTES);
    return header.subarray(0, readSync(this.#index, header, 0, header.length, 0));
  }

  #stop(message: string, cause: unknown): never {
    this.#failure = new StoreFailure(message, { cause });
    throw this.#failure;
  }
}

/**
 * Makes sure, before SQLite recovers from a log that an earlier process left, that the disk has it: what that process
 * could not flush may be in memory alone, where the system takes it for written.
 */
export async function rewriteWal(path: string, flushFile = flushToDisk): Promise<void> {
  const log = readableWal(path);
  if (!log) return;
  const file = openSync(path, 'r+');
  try {
    writeWhole(file, log);
    await flushFile(file);
  } finally {
    closeSync(file);
  }
}

function writeWhole(file: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at);
}

/** How long a disk that failed is left alone. */
const RETRY_MS = 500;
/** How long commits wait for a disk that fails; whoever sent them has gone by then. */
const PATIENCE_MS = 30_000;
const FAILED =
  'SQLite: a write to disk failed. Nothing is acknowledged until writes succeed again; the host retries by itself.';
const GIVEN_UP =
  'SQLite: the disk has not taken what was written for half a minute, so the store has stopped. Check the disk, then restart the host.';
const LOST = 'SQLite: the disk lost what was written, so the store has stopped. Check the disk, then restart the host.';

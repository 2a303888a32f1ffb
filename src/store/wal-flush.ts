import { closeSync, fdatasync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Clock, sleep } from '../system/clock.ts';
import { INDEX_HEADER_BYTES, type WalEnd, type WalPart, walEnd, writtenBetween } from './sqlite-wal.ts';
import { StoreFailure } from './store.ts';

/** Writes what the system holds of an open file to the disk. */
export type FlushFile = (file: number) => Promise<void>;

/** How a host flushes; tests delay it and let it fail. */
export const flushToDisk: FlushFile = promisify(fdatasync);

/** What a flush needs, and who is told that it has given up. */
export interface FlushOptions {
  readonly clock: Clock;
  readonly flushFile?: FlushFile | undefined;
  /** Called once, when only a new start may go on. */
  readonly onStop: (failure: StoreFailure) => void;
}

/**
 * Flushes SQLite's write-ahead log on the thread pool, so that the event loop goes on while the disk works. The
 * database itself runs with `synchronous = NORMAL`: it flushes the log only before a checkpoint copies from it, which
 * keeps the file consistent; that commits survive a power failure is what this flush is for.
 *
 * After a flush that failed, the system may have dropped what it could not write. It may take that for written, and even
 * when it is written again to the same place, a file system such as ext4 may leave it out without an error. So what was
 * not flushed is cut off the log, given back to the disk, and written anew, while its commits wait: they are either
 * acknowledged and announced like any other, or the store stops.
 */
export class WalFlush {
  readonly #file: number;
  readonly #index: number;
  readonly #clock: Clock;
  readonly #flushFile: FlushFile;
  readonly #onStop: (failure: StoreFailure) => void;
  /** How far the log was when it was flushed last. */
  #flushed: WalEnd;
  #attempt: Promise<void> | undefined;
  #failure: StoreFailure | undefined;

  /** Opens the log of a database in which something has been written, and which is on the disk. */
  constructor(path: string, { clock, flushFile = flushToDisk, onStop }: FlushOptions) {
    this.#file = openSync(path, 'r+');
    // Kept open: closing any descriptor of this file would release the locks that SQLite has on it.
    this.#index = openSync(path.replace(/-wal$/, '-shm'), 'r');
    this.#clock = clock;
    this.#flushFile = flushFile;
    this.#onStop = onStop;
    this.#flushed = this.#end();
  }

  /** Settles once everything that was committed before this call is on the disk, also after a passing error of the disk. */
  async flush(): Promise<void> {
    let end = this.#end();
    try {
      await this.#try();
    } catch (error) {
      this.#failure = new StoreFailure(FAILED, { cause: error });
      end = await this.#writeAgain(error);
      this.#failure = undefined;
    }
    this.#flushed = end;
  }

  /** How many pages the log had when it was flushed last. */
  get pages(): number {
    return this.#flushed.frames;
  }

  /** Throws while something is committed that the disk does not have. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** Settles when what was read before this call is on the disk: nobody sees a commit that a power failure may undo. */
  async settled(): Promise<void> {
    await this.#attempt?.catch(() => {});
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

  /** Writes what was not flushed to another place, and gives the end of the log. */
  async #writeAgain(first: unknown): Promise<WalEnd> {
    const { part, end } = this.#unflushed(first);
    const giveUpAt = this.#clock.now() + PATIENCE_MS;
    let cause = first;
    while (this.#clock.now() < giveUpAt) {
      await sleep(this.#clock, RETRY_MS);
      try {
        ftruncateSync(this.#file, part.start);
        writePart(this.#file, part);
        await this.#try();
        return end;
      } catch (error) {
        cause = error;
      }
    }
    return this.#stop(GIVEN_UP, cause);
  }

  /** What no flush has taken, read at once: the longer it waits, the more of it may be gone. */
  #unflushed(first: unknown): { readonly part: WalPart; readonly end: WalEnd } {
    let cause = first;
    try {
      const end = this.#end();
      const part = writtenBetween(this.#file, this.#flushed, end);
      if (part) return { part, end };
    } catch (error) {
      cause = error;
    }
    return this.#stop(LOST, cause);
  }

  #end(): WalEnd {
    const header = Buffer.alloc(INDEX_HEADER_BYTES);
    readSync(this.#index, header, 0, header.length, 0);
    return walEnd(header);
  }

  #stop(message: string, cause: unknown): never {
    this.#failure = new StoreFailure(message, { cause });
    this.#onStop(this.#failure);
    throw this.#failure;
  }
}

function writePart(file: number, { start, bytes }: WalPart): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, start + at);
}

/** How long a disk that failed is left alone. */
const RETRY_MS = 500;
/** How long commits wait for a disk that fails; whoever sent them has gone by then. */
const PATIENCE_MS = 30_000;
const FAILED =
  'SQLite: the write-ahead log (capstan.db-wal) could not be flushed to the disk. Nothing is acknowledged until it can be; the host retries by itself.';
const GIVEN_UP =
  'SQLite: the write-ahead log (capstan.db-wal) could not be flushed to the disk for half a minute, so the store has stopped. Check the disk, then restart the host.';
const LOST =
  'SQLite: the write-ahead log (capstan.db-wal) could not be flushed to the disk, and what it lacks cannot be read back, so the store has stopped. Check the disk, then restart the host.';

import { closeSync, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { StoreFailure } from './store.ts';

/** Writes what the system holds of an open file to the disk. */
export type FlushFile = (file: number) => Promise<void>;

/**
 * Flushes SQLite's write-ahead log on the thread pool, so that the event loop goes on while the disk works. The
 * database itself runs with `synchronous = NORMAL`: it flushes the log only before a checkpoint copies from it, which
 * keeps the file consistent; that commits survive a power failure is what this flush is for.
 */
export class WalFlush {
  readonly #file: number;
  readonly #flushFile: FlushFile;
  #inFlight: Promise<void> | undefined;
  #failure: StoreFailure | undefined;

  /** Opens the log of a database in which something has been written. */
  constructor(path: string, flushFile: FlushFile = promisify(fdatasync)) {
    this.#file = openSync(path, 'r+');
    this.#flushFile = flushFile;
  }

  /** Settles once everything that was committed before this call is on the disk. */
  async flush(): Promise<void> {
    this.#inFlight = this.#flushFile(this.#file);
    try {
      await this.#inFlight;
    } catch (error) {
      this.#failure = new StoreFailure(STOPPED, { cause: error });
      throw this.#failure;
    } finally {
      this.#inFlight = undefined;
    }
  }

  /** Settles when what was read before this call is on the disk: nobody sees a commit that a power failure may undo. */
  async settled(): Promise<void> {
    if (!this.#inFlight) return;
    await this.#inFlight.catch(() => {});
    this.check();
  }

  /**
   * Throws once a flush has failed. The system may have dropped what it could not write, and a second flush would
   * report success; so nothing more is acknowledged until a restart has read what the disk really has.
   */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** Closes the file; nothing may be in flight. */
  close(): void {
    closeSync(this.#file);
  }
}

const STOPPED =
  'SQLite: the disk did not take what was written, so the store has stopped. Check the disk, then restart the host.';

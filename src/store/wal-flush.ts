import { closeSync, fdatasync, openSync } from 'node:fs';
import { StoreFailure } from './store.ts';

/**
 * Flushes SQLite's write-ahead log on the thread pool, so that the event loop goes on while the disk works. The
 * database itself runs with `synchronous = NORMAL`: it flushes the log only before a checkpoint copies from it, which
 * keeps the file consistent; that commits survive a power failure is what this flush is for.
 */
export class WalFlush {
  readonly #file: number;
  #inFlight: Promise<void> | undefined;
  #failure: StoreFailure | undefined;

  /** Opens the log of a database whose first transaction has been committed. */
  constructor(path: string) {
    this.#file = openSync(path, 'r+');
  }

  /** Settles once everything that was committed before this call is on the disk. */
  flush(): Promise<void> {
    this.#inFlight = new Promise((resolve, reject) => {
      fdatasync(this.#file, (error) => {
        this.#inFlight = undefined;
        if (error) reject(this.#fail(error));
        else resolve();
      });
    });
    return this.#inFlight;
  }

  /** Settles when what a reader has just seen is on the disk: nobody is shown a commit that a power failure could undo. */
  settled(): Promise<void> | undefined {
    return this.#inFlight;
  }

  /**
   * Throws once a flush has failed. The system may have dropped what it could not write, and a second flush would
   * report success, so nothing more may be acknowledged until a restart has read back what the disk really has.
   */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  close(): void {
    closeSync(this.#file);
  }

  #fail(error: Error): StoreFailure {
    this.#failure = new StoreFailure(
      'SQLite: the disk could not take what was written, so the store has stopped. Check the disk, then restart the host.',
      { cause: error },
    );
    return this.#failure;
  }
}

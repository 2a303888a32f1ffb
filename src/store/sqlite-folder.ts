import { closeSync, existsSync, fsyncSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { closeFileToOthers, makePrivateFile } from '../system/private-files.ts';
import { StoreFailure } from './store.ts';

/** The database file in a data folder. */
export function databaseFile(folder: string): string {
  return join(folder, 'capstan.db');
}

/** Makes the database file, if need be. SQLite gives the files that it creates beside it the same permissions. */
export function privateDatabase(folder: string): string {
  const file = databaseFile(folder);
  makePrivateFile(file);
  for (const suffix of ['-wal', '-shm', '-journal']) closeFileToOthers(`${file}${suffix}`);
  return file;
}

function lockFile(folder: string): string {
  return join(folder, 'owner.lock');
}

/** Whether a process has the lock of a data folder. Looking shares the lock for an instant and changes nothing. */
export function isFolderLocked(folder: string): boolean {
  const file = lockFile(folder);
  if (!existsSync(file)) return false;
  const lock = new DatabaseSync(file, { timeout: 0, readOnly: true });
  try {
    lock.prepare('SELECT name FROM sqlite_master').all();
    return false;
  } catch {
    return true;
  } finally {
    lock.close();
  }
}

/** Takes a lock that the operating system releases when the process ends, even after a crash. */
export function lockFolder(folder: string): () => void {
  const file = lockFile(folder);
  makePrivateFile(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch {
    lock.close();
    throw new StoreFailure(
      `Another process, probably a running host, is using the data folder ${folder}. Stop it, or choose another folder.`,
    );
  }
  return () => lock.close();
}

/** Waits until a file, or the names in a folder, are on the disk. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** How often reads look whether the file is still there; commits always do. */
const LOOK_EVERY_MS = 1_000;

/**
 * Notices that the database file was deleted or replaced under the process. Its open file would take writes for as long
 * as the process lives, and nobody would ever find them again.
 */
export class FileGuard {
  readonly #files: readonly string[];
  readonly #identities: readonly (string | undefined)[];
  #lookedAt = Number.NEGATIVE_INFINITY;
  #missing: string | undefined;

  /** To be made once the database has its write-ahead log. */
  constructor(file: string) {
    this.#files = [file, `${file}-wal`];
    this.#identities = this.#files.map(identityOf);
  }

  /** Throws if a file is gone. */
  check(): void {
    this.#missing = this.#files.find((file, index) => identityOf(file) !== this.#identities[index]);
    if (this.#missing === undefined) return;
    throw new StoreFailure(
      `SQLite: ${this.#missing} was deleted or replaced while the host was using it. Nothing is written any more. Stop the host, put the data folder back from a backup and start again.`,
    );
  }

  /** The same, without asking the file system each time. */
  checkSometimes(now: number): void {
    if (this.#missing === undefined && now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    this.check();
  }
}

function identityOf(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { makePrivateFile } from '../system/private-files.ts';
import { lockFolder, privateDatabase } from './sqlite-folder.ts';
import { StoreFailure } from './store.ts';

/** Pages that one step copies. In between the process serves others. */
const PAGES_PER_STEP = 100;

/**
 * Copies a database that is in use into a new file. It uses the connection that writes, so that SQLite carries writes
 * that happen meanwhile over to the copy: a connection of its own would begin anew after each of them.
 */
export async function backUp(database: DatabaseSync, file: string): Promise<void> {
  if (existsSync(file)) throw new StoreFailure(`${file} exists already. A backup is a new file.`);
  // Under another name until it is whole.
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  try {
    makePrivateFile(partial);
    await backup(database, partial, { rate: PAGES_PER_STEP });
    makeSingleFile(partial);
    renameSync(partial, file);
    flushFolder(dirname(file));
  } catch (error) {
    rmSync(partial, { force: true });
    throw new StoreFailure(`The backup failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Copies the database of a data folder that no process is using. */
export async function backUpFolder(folder: string, file: string): Promise<void> {
  const releaseFolder = lockFolder(folder);
  const database = new DatabaseSync(privateDatabase(folder));
  try {
    await backUp(database, file);
  } finally {
    database.close();
    releaseFolder();
  }
}

/** A copy needs no write-ahead log beside it; the host that uses it later makes one. */
function makeSingleFile(file: string): void {
  const copy = new DatabaseSync(file);
  copy.exec('PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE');
  copy.close();
}

/** A new name is durable once its folder is. */
function flushFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

import { once } from 'node:events';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { makePrivateFile } from '../system/private-files.ts';
import { databaseFile, lockFolder, syncPath } from './sqlite-folder.ts';
import { StoreFailure } from './store.ts';

/**
 * Reads one state of the database in a thread and with a connection of its own: however much is written meanwhile, neither
 * waits for the other, and nothing begins anew.
 */
const COPYING = `
  const { workerData } = require('node:worker_threads');
  const { DatabaseSync } = require('node:sqlite');
  const source = new DatabaseSync(workerData.from, { readOnly: true });
  source.prepare('VACUUM INTO ?').run(workerData.to);
  source.close();
`;

/** Copies a database that is in use into a new file. `settled` says when what was read from it is on the disk. */
export async function backUp(
  from: string,
  file: string,
  settled: () => Promise<void> | undefined = () => undefined,
): Promise<void> {
  if (existsSync(file)) throw new StoreFailure(`${file} already exists. Name a new file for the backup.`);
  // Under another name until it is whole.
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  try {
    makePrivateFile(partial);
    await once(new Worker(COPYING, { eval: true, workerData: { from, to: partial } }), 'exit');
    await settled();
    syncPath(partial);
    renameSync(partial, file);
    syncPath(dirname(file));
  } catch (error) {
    rmSync(partial, { force: true });
    throw new StoreFailure(`The backup failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Copies the database of a data folder that no process is using. */
export async function backUpFolder(folder: string, file: string): Promise<void> {
  if (!existsSync(databaseFile(folder))) throw new StoreFailure(`There is no ${databaseFile(folder)}.`);
  const releaseFolder = lockFolder(folder);
  try {
    await backUp(databaseFile(folder), file);
  } finally {
    releaseFolder();
  }
}

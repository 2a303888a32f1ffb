import { closeSync, existsSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Log } from '../system/log.ts';
import { makePrivateFile } from '../system/private-files.ts';
import { syncPath } from './sqlite-folder.ts';
import { StoreFailure } from './store.ts';
import { type FlushFile, flushToDisk } from './wal-flush.ts';

/** SQLite's results for a file, or the names in a folder, that could not be flushed to the disk. */
const FAILED_SYNCS: readonly unknown[] = [1034, 1290];

/** Whether SQLite failed because something could not be flushed to the disk. */
export function isFailedSync(error: unknown): boolean {
  return FAILED_SYNCS.includes((error as { errcode?: unknown }).errcode);
}

/** The file that is there while the disk may not have what the system has of a database file. */
function markerOf(database: string): string {
  return `${database}-unsynced`;
}

/**
 * Notes for the next start that a database could not be flushed. The system has its pages in memory and takes them for
 * written; if they are written again to the same place, a file system such as ext4 may leave them out without an error.
 */
export function markUnsynced(database: string, log: Pick<Log, 'error'> | undefined): void {
  try {
    makePrivateFile(markerOf(database));
  } catch (error) {
    log?.error(
      { err: error, file: markerOf(database) },
      'the database could not be flushed to the disk, and no file can be made that says so: create it before the next start, or restart the machine',
    );
  }
}

/** What the renewal of a database needs. */
interface RenewalOptions {
  readonly log?: Pick<Log, 'warn' | 'error'> | undefined;
  readonly flushFile?: FlushFile | undefined;
}

/**
 * Puts a database that could not be flushed, and its log, into new files, before SQLite opens them: there they are
 * written to new places of the disk. The log still has every page that was not flushed. To be called by the owner of the
 * folder; whoever else still has the old files open no longer shares anything with them.
 */
export async function renewUnsynced(database: string, { log, flushFile = flushToDisk }: RenewalOptions): Promise<void> {
  const wal = `${database}-wal`;
  const hasLeftLog = existsSync(wal);
  let isDue = existsSync(markerOf(database));
  if (hasLeftLog) {
    // An error of the log is reported here, and not to SQLite, which would not open it: all of it is copied anyway.
    await isSynced(wal, flushFile);
    if (!(await isSynced(database, flushFile))) {
      isDue = true;
      // It is reported once.
      markUnsynced(database, log);
    }
  }
  if (!isDue) return;
  try {
    if (hasLeftLog) await renew(wal, flushFile);
    await renew(database, flushFile);
    rmSync(`${database}-shm`, { force: true });
    rmSync(markerOf(database), { force: true });
    syncPath(dirname(database));
  } catch (error) {
    throw new StoreFailure(
      `${database} could not be flushed to the disk earlier, and cannot be copied into a new file: ${(error as Error).message}. Check the disk, and that it has room for a copy; then start again.`,
      { cause: error },
    );
  }
  log?.warn({ file: database }, 'the database could not be flushed to the disk earlier: it was put into a new file');
}

/** False if the system could not write something of a file, and has told nobody yet. */
async function isSynced(path: string, flushFile: FlushFile): Promise<boolean> {
  const file = openSync(path, 'r');
  try {
    await flushFile(file);
    return true;
  } catch {
    return false;
  } finally {
    closeSync(file);
  }
}

const CHUNK_BYTES = 1_048_576;

/** Puts a file into a new one, which takes its place once it is on the disk. */
async function renew(path: string, flushFile: FlushFile): Promise<void> {
  const target = `${path}.new`;
  rmSync(target, { force: true });
  try {
    await copy(path, target, flushFile);
    renameSync(target, path);
  } catch (error) {
    rmSync(target, { force: true });
    throw error;
  }
}

async function copy(path: string, target: string, flushFile: FlushFile): Promise<void> {
  makePrivateFile(target);
  const [from, to] = [openSync(path, 'r'), openSync(target, 'r+')];
  try {
    // Byte by byte: a file system that copies files by itself may share their places.
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0, read = 0; ; at += read) {
      read = readSync(from, chunk, 0, CHUNK_BYTES, at);
      if (read === 0) break;
      for (let written = 0; written < read; ) written += writeSync(to, chunk, written, read - written, at + written);
    }
    await flushFile(to);
  } finally {
    closeSync(from);
    closeSync(to);
  }
}

import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Permission bits of the group and of everybody else. */
const OTHERS = 0o077;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Windows has no such bits: access is decided by the lists of the folder. */
const HAS_MODES = process.platform !== 'win32';

/** A file or folder is open to other users of the machine, and that cannot be changed. */
class NotPrivate extends Error {
  override readonly name = 'NotPrivate';
}

/** Creates a folder that only the user of this process may enter, or takes others' access to it away. */
export function makePrivateFolder(path: string): void {
  makeFolders(path);
  closeToOthers(path, FOLDER_MODE);
}

/** Node's own `recursive` never ends where a parent is there and yet takes no folders, as `/proc`. */
function makeFolders(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeFolders(parent);
  try {
    mkdirSync(path, { mode: FOLDER_MODE });
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(path) || !statSync(path).isDirectory()) throw error;
  }
}

/** Creates an empty file that only the user of this process may read, or takes others' access to it away. */
export function makePrivateFile(path: string): void {
  closeSync(openSync(path, 'a', FILE_MODE));
  closeToOthers(path, FILE_MODE);
}

/** Takes others' access to a file away, if the file exists. */
export function closeFileToOthers(path: string): void {
  if (existsSync(path)) closeToOthers(path, FILE_MODE);
}

/** Throws NotPrivate if users other than the owner can access a file or folder. */
export function checkPrivate(path: string): void {
  if (isOpenToOthers(path)) throw new NotPrivate(`Other users can access ${path}. Run: chmod go-rwx ${path}`);
}

function closeToOthers(path: string, mode: number): void {
  if (!isOpenToOthers(path)) return;
  try {
    chmodSync(path, mode);
  } catch {
    // It belongs to somebody else; the check says so.
  }
  checkPrivate(path);
}

function isOpenToOthers(path: string): boolean {
  return HAS_MODES && (statSync(path).mode & OTHERS) !== 0;
}

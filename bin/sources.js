// Plain JavaScript, because the `capstan` file uses it before it knows which Node it has.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

/** What the program is made of, in a checkout. */
const PROGRAM = ['src', 'scripts', 'package-lock.json'];
/** What the console is made of. */
export const CONSOLE = [...PROGRAM, 'console'];

/** A digest of the names, sizes and times of change of the sources: another one after a change of any of them. */
export function stateOfSources(root, places = PROGRAM) {
  const digest = createHash('sha256');
  for (const path of places.flatMap((place) => filesAt(join(root, place)))) {
    const { size, mtimeMs } = statSync(path);
    digest.update(`${relative(root, path)} ${size} ${mtimeMs}\n`);
  }
  return digest.digest('hex');
}

/** The files below a folder, without tests and what was built there; a file itself. */
function filesAt(path, isFolder = statSync(path).isDirectory()) {
  if (!isFolder) return path.endsWith('.test.ts') ? [] : [path];
  if (basename(path) === 'dist') return [];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    filesAt(join(path, entry.name), entry.isDirectory()),
  );
}

/** The file beside a bundle that says which sources it was made of. */
export const STATE_FILE = 'sources.txt';

/** Whether a bundle was made of the sources as they are now. */
export function isOfTheseSources(root, bundle, places = PROGRAM) {
  try {
    return readFileSync(join(bundle, STATE_FILE), 'utf8') === stateOfSources(root, places);
  } catch {
    return false;
  }
}

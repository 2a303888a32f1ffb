// Plain JavaScript, because the `capstan` file uses it before it knows which Node it has.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

/** What the program is made of, in a checkout. */
const PROGRAM = ['src', 'scripts', 'package-lock.json'];
/** What the console is made of. */
export const CONSOLE = [...PROGRAM, 'console'];

/** How many sources there are, how large they are together and when the newest was changed: another text after any change. */
export function stateOfSources(root, places = PROGRAM) {
  let files = 0;
  let bytes = 0;
  let newest = 0;
  for (const path of places.flatMap((place) => filesAt(join(root, place)))) {
    const { size, mtimeMs } = statSync(path);
    files++;
    bytes += size;
    newest = Math.max(newest, mtimeMs);
  }
  return `${files} files, ${bytes} bytes, ${new Date(newest).toISOString()}`;
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

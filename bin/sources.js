// Plain JavaScript, because the `capstan` file uses it before it knows which Node it has.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What the program is made of, in a checkout. */
const PROGRAM = ['src', 'scripts', 'package-lock.json'];
/** What the console is made of. */
export const CONSOLE = [...PROGRAM, 'console'];

/** A digest of the names, sizes and times of change of the sources: another one after a change of any of them. */
export function stateOfSources(root, places = PROGRAM) {
  const described = places.map((place) => describe(root, place, statSync(join(root, place)).isDirectory()));
  return createHash('sha256').update(described.join('')).digest('hex');
}

/**
 * A line for each file below a folder, without tests and what was built there, or for a file itself. Every command
 * in a checkout calls this: joining texts takes half of the time that lists of paths did.
 */
function describe(root, path, isFolder) {
  if (isFolder) return path.endsWith('/dist') ? '' : describeFolder(root, path);
  if (path.endsWith('.test.ts')) return '';
  const { size, mtimeMs } = statSync(`${root}/${path}`);
  return `${path} ${size} ${mtimeMs}\n`;
}

function describeFolder(root, path) {
  let text = '';
  for (const entry of readdirSync(`${root}/${path}`, { withFileTypes: true })) {
    text += describe(root, `${path}/${entry.name}`, entry.isDirectory());
  }
  return text;
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

/**
 * `npm ci` and `npm run build` make the console and what the package has in `dist/`. In a checkout, `capstan` runs from
 * there until a source changes, and projects find the types of `capstan/build` there. What was made of the same sources
 * stays: somebody may use it, and `npx capstan` comes by here too.
 */
import { execFile } from 'node:child_process';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RolldownOutput } from 'rolldown';
import { build } from 'vite';
import { CONSOLE, isOfTheseSources, STATE_FILE, stateOfSources } from '../bin/sources.js';
import { bundlePortable, bundleProgram } from './bundle.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');
const PAGES = join(ROOT, 'console', 'dist');

await Promise.all([
  isOfTheseSources(ROOT, PAGES, CONSOLE) || buildConsole(),
  isOfTheseSources(ROOT, DIST) || buildProgram(),
]);

async function buildConsole(): Promise<void> {
  const state = stateOfSources(ROOT, CONSOLE);
  await build({ configFile: join(ROOT, 'console', 'vite.config.ts'), logLevel: 'error' });
  writeFileSync(join(PAGES, STATE_FILE), state);
}

async function buildProgram(): Promise<void> {
  const state = stateOfSources(ROOT);
  rmSync(DIST, { recursive: true, force: true });
  const [program] = await Promise.all([bundleProgram(DIST), bundlePortable(DIST), writeTypes()]);
  writeFileSync(join(DIST, 'LICENSES.txt'), licenses(program));
  // Last: a bundle that is not whole is not used.
  writeFileSync(join(DIST, STATE_FILE), state);
}

/** Writes the types without checking them, which takes half of the time: `npm run check` does that. */
async function writeTypes(): Promise<void> {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['-p', 'tsconfig.build.json', '--noCheck', '--checkers', '1'];
  await promisify(execFile)(process.execPath, [tsc, ...options], { cwd: ROOT });
}

/** The licence texts of all packages of which something is in the program. */
function licenses({ output }: RolldownOutput): string {
  const files = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []));
  const folders = files.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)].sort().map(licenseOf).join('\n');
}

function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const texts = globSync('{LICEN[CS]E,licen[cs]e}*', { cwd: folder }).map((file) =>
    readFileSync(join(folder, file), 'utf8').trim(),
  );
  return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
}

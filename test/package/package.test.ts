import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/version.ts';
import { freshFolder } from '../support/database.ts';
import { KEYS } from '../support/host.ts';
import { bytesIn, dependencyFolders } from '../support/installed-size.ts';
import { type Program, runProgram, spawnHost } from '../support/process.ts';
import { pagesWith, snippets } from '../support/snippets.ts';

/**
 * Goal: what is published works for those who install it. Method: npm packs it and installs it into an empty folder,
 * where it is used as its users do. No registry is asked: what it depends on is linked from here.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
  scripts: Record<string, string>;
};
/** It is made of modules of the language, as everything is that runs on the Node it needs. */
const OUT_OF_DATE: readonly string[] = ['node10', 'node16-cjs'];

const INSTALLED_BYTES_MAX = 40_000_000;

/** As our own sources are checked. */
const STRICT = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--erasableSyntaxOnly'];
const ON_NODE = ['--module', 'nodenext', '--types', 'node', '--lib', 'es2024,dom,esnext'];
const IN_BROWSER = ['--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2024,dom,esnext', '--types', ''];

/** To pack builds the console and bundles the program, on a machine that does other things besides. */
const PACKING_MS = 300_000;

const run = promisify(execFile);
const packed = freshFolder();
const user = freshFolder();
const tarball = (): string => join(packed.path, `capstan-${VERSION}.tgz`);

/** What npm runs before it packs, and after it has installed what a checkout needs. */
const BUILD = 'node scripts/build.ts';

beforeAll(async () => {
  await run(process.execPath, ['scripts/build.ts'], { cwd: ROOT });
  await npm(ROOT, 'pack', '--ignore-scripts', '--pack-destination', packed.path);
  writeFileSync(join(user.path, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  for (const name of Object.keys(PACKAGE.dependencies)) link(name);
  await npm(user.path, 'install', '--offline', '--ignore-scripts', tarball());
  link('@types/node');
}, PACKING_MS);

afterAll(() => {
  packed.remove();
  user.remove();
});

/** Runs npm with a cache of its own: in that of the user it looks at everything that was ever installed. */
function npm(folder: string, ...args: string[]) {
  return run('npm', [...args, '--cache', join(packed.path, 'cache')], { cwd: folder, maxBuffer: 16_777_216 });
}

function link(name: string, folder = user.path, target = join(MODULES, name)): void {
  const path = join(folder, 'node_modules', name);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, 'junction');
}

/** A program of the user. Here it is text: nothing of it would be found from this folder. */
function write(name: string): Program {
  copyFileSync(new URL(`${name}.txt`, import.meta.url), join(user.path, name));
  return { path: name, folder: user.path };
}

/** Runs the compiler. With one checker it does half of the work: several of them find out the same things each. */
function tsc(folder: string, ...args: string[]) {
  return run(process.execPath, [join(MODULES, 'typescript', 'bin', 'tsc'), '--checkers', '1', ...args], {
    cwd: folder,
  });
}

/** What the compiler says of files of the user. */
async function complaints(...options: string[]): Promise<string> {
  return tsc(user.path, '--noEmit', '--skipDefaultLibCheck', ...STRICT, '--target', 'es2024', ...options).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  );
}

describe('the package', () => {
  it('is built before it is packed', () => {
    expect(PACKAGE.scripts).toMatchObject({ prepack: 'npm run build', build: BUILD, prepare: BUILD });
  });

  it('has nothing that publint would change', async () => {
    const bytes = new Uint8Array(readFileSync(tarball()));
    expect((await publint({ pack: { tarball: bytes.buffer }, strict: true })).messages).toEqual([]);
  });

  it('has types that fit what runs, at every entry', async () => {
    const result = await checkPackage(createPackageFromTarballData(readFileSync(tarball())));
    if (!result.types) throw new Error('there are no types');
    const entries = ['.', './build', './client', './protocol', './engine'];
    expect(Object.keys(result.entrypoints)).toEqual(expect.arrayContaining(entries));
    const problems = result.problems.filter(
      (problem) => !('resolutionKind' in problem && OUT_OF_DATE.includes(problem.resolutionKind)),
    );
    expect(problems).toEqual([]);
  });
});

describe('an installation', () => {
  it('is small: most packages are inside the program, as far as it uses them', () => {
    const folders = [...dependencyFolders(ROOT), join(user.path, 'node_modules', 'capstan')];
    const bytes = folders.map(bytesIn).reduce((sum, each) => sum + each, 0);
    expect(bytes).toBeLessThan(INSTALLED_BYTES_MAX);
  });
});

describe('its documentation', () => {
  it('has the pictures that its pages show', () => {
    const docs = join(user.path, 'node_modules', 'capstan', 'docs');
    const shown = globSync('*.md', { cwd: docs }).flatMap((page) =>
      [...readFileSync(join(docs, page), 'utf8').matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, path]) => path!),
    );
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.filter((path) => !existsSync(join(docs, path)))).toEqual([]);
  });
});

describe('in an empty folder', () => {
  const capstan: Program = { path: 'node_modules/capstan/dist/main.js', folder: user.path };

  it('the command is on the path', async () => {
    const PATH = [join(user.path, 'node_modules', '.bin'), dirname(process.execPath), process.env.PATH].join(delimiter);
    const { stdout } = await run('capstan', ['--version'], { cwd: user.path, env: { PATH } });
    expect(stdout).toBe(`${VERSION}\n`);
  });

  it('the command serves, and the client and the command speak to it', async () => {
    const host = await spawnHost({ CAPSTAN_DATA: 'served', CAPSTAN_CONFORMANCE: '0' }, capstan);
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key };
    const asking = write('client.ts');
    expect(await runProgram([], environment, asking)).toEqual({
      code: 0,
      output: '{"status":"completed","code":"not_found"}\n',
    });
    const inputs = ['--set', 'subject=Hello', '--set', 'plan=pro'];
    const waited = await runProgram(['runs', 'start', 'support-triage', ...inputs, '--wait'], environment, capstan);
    expect(waited).toMatchObject({ code: 0, output: expect.stringContaining('completed') });
    host.signal('SIGTERM');
    expect(await host.exit).toBe(0);
  });

  it('a program runs a host inside itself, and folds the log of a run', async () => {
    const embedding = write('embedding.ts');
    const ran = await runProgram([], {}, embedding);
    expect(ran).toEqual({ code: 0, output: 'completed viewer editor reviewer owner\n' });
  });

  it('programs and the code of the documentation fit the types, and a page in a browser has no need of those of Node', async () => {
    for (const name of ['client.ts', 'embedding.ts', 'page.ts']) write(name);
    const run = snippets().filter(({ isNotRun }) => isNotRun === undefined);
    const pages = pagesWith('ts', run).map(({ name, text }) => ({
      file: `${name}.mts`,
      text: `${text}\nexport {};\n`,
    }));
    for (const { file, text } of pages) writeFileSync(join(user.path, file), text);
    expect(pages.length).toBeGreaterThan(0);
    const [onNode, inBrowser] = await Promise.all([
      complaints('client.ts', 'embedding.ts', ...pages.map(({ file }) => file), ...ON_NODE),
      complaints('page.ts', ...IN_BROWSER),
    ]);
    expect(onNode).toBe('');
    expect(inBrowser).toBe('');
  });
});

describe('in a checkout', () => {
  it('a project that `capstan init` makes outside of it has its types, without another step', async () => {
    const folder = join(user.path, 'my-agent');
    const made = await runProgram(['init', folder], {}, { path: 'dist/main.js', folder: ROOT });
    expect(made, made.output).toMatchObject({ code: 0 });
    expect(made.output).not.toContain('npm run build');
    // As `npm install` does there, without a registry.
    link('capstan', folder, ROOT);
    link('@types/node', folder);
    const found = await tsc(folder, '--noEmit').catch(({ stdout }: { stdout: string }) => ({ stdout }));
    expect(found.stdout).toBe('');
  });
});

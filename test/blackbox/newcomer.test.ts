import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../support/database.ts';
import { KEY_SHOWN } from '../support/desk.ts';
import { freePort } from '../support/free-port.ts';
import { snippets } from '../support/snippets.ts';

/**
 * Goal: somebody who has never seen Capstan, on a machine with an older Node, gets to the end of the README and of the
 * ten-minute page. Method: a checkout as `npm ci` leaves it, two terminals, and every line pasted as it stands. npx
 * starts the first command; the others, which take it as long again, begin where it would lead them.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHECKOUT = ['bin', 'console', 'docs', 'examples', 'node_modules', 'package.json', 'scripts', 'src', '.npmrc'];
const NEEDED = 24;
const CALLED_OLD = `data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`,
)}`;
const PAGE = 'docs/ten-minutes.md';
const ofPage = (page: string) => snippets().filter((each) => each.page === page && each.language === 'sh');

describe('a newcomer', () => {
  const folder = freshFolder();
  const checkout = join(folder.path, 'capstan');
  let environment: Record<string, string>;
  let firstTerminal: ChildProcess;
  let key = '';

  beforeAll(async () => {
    mkdirSync(checkout);
    for (const name of CHECKOUT) symlinkSync(join(ROOT, name), join(checkout, name));
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}`;
    environment = {
      HOME: folder.path,
      PATH: pathFor(folder.path),
      PORT: port,
      CAPSTAN_URL: url,
      NO_COLOR: '1',
    };
    firstTerminal = terminal(`${startingLines()}\n`);
    key = await keyShownBy(firstTerminal);
  });
  afterAll(async () => {
    const ended = new Promise((resolve) => firstTerminal?.once('close', resolve));
    if (firstTerminal?.pid !== undefined) process.kill(-firstTerminal.pid, 'SIGTERM');
    await ended;
    folder.remove();
  });

  /** A shell in the checkout, in a group of its own, so that the host in it can be stopped. */
  function terminal(lines: string, more: Record<string, string> = {}): ChildProcess {
    return spawn('bash', ['--norc', '-euo', 'pipefail', '-c', lines], {
      cwd: checkout,
      env: { ...environment, ...more },
      detached: true,
    });
  }

  function pasted(lines: string): Promise<{ code: number | null; shown: string }> {
    const shell = terminal(lines.replaceAll(KEY_SHOWN, key));
    const read = readerOf(shell);
    return new Promise((resolve) => shell.on('close', (code) => resolve({ code, shown: read() })));
  }

  it('has a Node that is too old', () => {
    const version = execFileSync('bash', ['--norc', '-c', 'node -p process.versions.node'], {
      env: environment,
      encoding: 'utf8',
    });
    expect(Number.parseInt(version, 10)).toBeLessThan(NEEDED);
  });

  it('ends with a finished agent run, an answered approval and its outputs on the screen', {
    timeout: 240_000,
  }, async () => {
    const [, , ...rest] = ofPage(PAGE);
    const { code, shown } = await pasted(
      rest
        .filter(({ isNotRun }) => isNotRun === undefined)
        .map(({ text }) => text)
        .join('\n'),
    );
    expect(code === 0 ? 'fine' : shown).toBe('fine');
    expect(shown).toContain('exit code 3: it waits for you');
    expect(shown).toMatch(/Answered approve of run-\w+|approve.*accepted/i);
    const [, outcome = ''] = shown.split('run.completed');
    expect(outcome).toContain('completed');
    expect(outcome).toContain('Refund the customer: the parcel is lost.');
  });

  it('gets through the README as well', { timeout: 120_000 }, async () => {
    const lines = ofPage('README.md').filter(({ isNotRun }) => isNotRun === undefined);
    const { code, shown } = await pasted(lines.map(({ text }) => text).join('\n'));
    expect(code === 0 ? 'fine' : shown).toBe('fine');
    expect(shown).toContain('event: run.completed');
  });

  /** The first two blocks of the page. */
  function startingLines(): string {
    const [settings, start] = ofPage(PAGE);
    expect(start!.text).toBe('npm start\n');
    return `${settings!.text}\n${start!.text}`;
  }
});

/** Everything that a shell has shown so far. */
function readerOf(shell: ChildProcess): () => string {
  let shown = '';
  for (const stream of [shell.stdout!, shell.stderr!]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
  }
  return () => shown;
}

/** Reads along until the host listens, and takes the key from the screen, as a person does. */
function keyShownBy(shell: ChildProcess): Promise<string> {
  const read = readerOf(shell);
  return new Promise((resolve, reject) => {
    shell.stdout!.on('data', () => {
      const [, key] = /not shown again\.\s+(\S+)/.exec(read()) ?? [];
      if (key !== undefined && read().includes('listening on')) resolve(key);
    });
    shell.on('close', () => reject(new Error(`the host did not start:\n${read()}`)));
  });
}

/** A path whose Node is too old, that of the machine or else ours that calls itself so, and whose npx is used once. */
function pathFor(folder: string): string {
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  const others = (process.env.PATH ?? '').split(delimiter).filter((each) => !each.includes('node_modules'));
  const found = execFileSync('bash', ['--norc', '-c', 'node -p process.versions.node || echo 0; command -v npx'], {
    env: { PATH: others.join(delimiter) },
    encoding: 'utf8',
  });
  const [version, npx] = found.split('\n');
  const isFirst = `mkdir "${join(programs, 'npx-was-used')}" 2>/dev/null`;
  writeProgram(join(programs, 'npx'), `${isFirst} && exec "${npx}" "$@"\nshift\nexec node bin/capstan.js "$@"`);
  const isOld = Number.parseInt(version!, 10) > 0 && Number.parseInt(version!, 10) < NEEDED;
  if (isOld) return [programs, ...others].join(delimiter);
  writeProgram(join(programs, 'node'), `exec "${process.execPath}" --import '${CALLED_OLD}' "$@"`);
  return [programs, ...others, dirname(process.execPath)].join(delimiter);
}

function writeProgram(path: string, lines: string): void {
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
}

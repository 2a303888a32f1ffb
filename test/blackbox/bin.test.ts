import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { STATE_FILE, stateOfSources } from '../../bin/sources.js';
import { VERSION } from '../../src/version.ts';
import { freshFolder } from '../support/database.ts';

/**
 * Goal: the `capstan` file works on the Node that a machine happens to have. Method: a module that is loaded first makes
 * the Node of these tests call itself an older one; the file then has to find the pinned one.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CALLED_OLD = `data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`,
)}`;

const folder = freshFolder();
afterAll(() => folder.remove());

const ENVIRONMENT = { PATH: process.env.PATH ?? '', XDG_CACHE_HOME: join(folder.path, 'cache') };
const STOP_MAX_MS = 30_000;

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function nodeArguments(root: string, args: readonly string[], isOld: boolean): string[] {
  return [...(isOld ? ['--import', CALLED_OLD] : []), join(root, 'bin', 'capstan.js'), ...args];
}

function capstan(root: string, args: readonly string[], { isOld = true, onOut = (_text: string, _pid: number) => {} }) {
  const child = spawn(process.execPath, nodeArguments(root, args, isOld), { env: ENVIRONMENT, cwd: folder.path });
  const ended = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.out += text;
    onOut(ended.out, child.pid!);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    ended.err += text;
  });
  return new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, ...ended })));
}

describe('the capstan file', () => {
  it.each([true, false])('runs the command; on an older Node: %s', async (isOld) => {
    expect(await capstan(ROOT, ['--version'], { isOld })).toEqual({ code: 0, out: `${VERSION}\n`, err: '' });
    expect(await capstan(ROOT, ['no-such-command'], { isOld })).toMatchObject({ code: 2 });
  });

  it('keeps what Node has compiled in the folder of the user', async () => {
    await capstan(ROOT, ['--version'], {});
    expect(readdirSync(join(folder.path, 'cache', 'capstan', 'compiled'))).not.toEqual([]);
  });

  it('runs the bundle of a checkout until one of its sources changes', async () => {
    const root = join(folder.path, 'checkout');
    for (const name of ['bin', 'package.json']) cpSync(join(ROOT, name), join(root, name), { recursive: true });
    const files = { 'src/cli/main.ts': `console.log('sources')`, 'dist/main.js': `console.log('bundle')` };
    for (const [name, text] of Object.entries({ ...files, 'scripts/any.ts': '', 'package-lock.json': '{}' })) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    const printed = async (): Promise<string> => (await capstan(root, [], { isOld: false })).out.trim();
    expect(await printed()).toBe('sources');
    writeFileSync(join(root, 'dist', STATE_FILE), stateOfSources(root));
    expect(await printed()).toBe('bundle');
    writeFileSync(join(root, 'src', 'cli', 'another.ts'), '');
    expect(await printed()).toBe('sources');
  });

  it('says which Node is needed where there is none', async () => {
    cpSync(join(ROOT, 'bin'), join(folder.path, 'alone', 'bin'), { recursive: true });
    cpSync(join(ROOT, 'package.json'), join(folder.path, 'alone', 'package.json'));
    const { code, out, err } = await capstan(join(folder.path, 'alone'), ['--version'], {});
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^Capstan needs Node 24 or newer, and this is Node 20\.20\.2\. .*npm install node@24\n$/);
  });

  it('hands a signal on, so that a host on an older Node stops gracefully', async () => {
    const stopped = new Set<number>();
    const stopOnce = (text: string, pid: number): void => {
      if (!text.includes('listening on') || stopped.has(pid)) return;
      stopped.add(pid);
      process.kill(pid, 'SIGTERM');
    };
    const args = ['serve', '--port', '0', '--data', join(folder.path, 'data')];
    const { code, out } = await capstan(ROOT, args, { onOut: stopOnce });
    expect(out).toMatch(/^listening on http:/m);
    expect(code).toBe(0);
  });

  describe('started by npm, in a shell', () => {
    /** The signal goes to the shell, which keeps it to itself, or to everybody in its group. Gives what the host printed. */
    const stopped = async (isOld: boolean, target: 'shell' | 'group'): Promise<string> => {
      const data = join(folder.path, `of-npm-${isOld}-${target}`);
      const args = ['serve', '--port', '0', '--data', data];
      const command = [process.execPath, ...nodeArguments(ROOT, args, isOld)];
      // Longer than it takes until the file has seen that the shell is gone.
      const env = { ...ENVIRONMENT, CAPSTAN_DRAIN_MS: '1500', npm_lifecycle_event: 'start' };
      const shell = spawn('sh', ['-c', '"$@"; true', 'sh', ...command], { env, cwd: folder.path, detached: true });
      const pid = target === 'shell' ? shell.pid! : -shell.pid!;
      let out = '';
      shell.stdout.setEncoding('utf8').on('data', (text: string) => {
        out += text;
        if (text.includes('listening on')) process.kill(pid, 'SIGTERM');
      });
      try {
        // The host has the other end of it.
        await once(shell.stdout, 'close', { signal: AbortSignal.timeout(STOP_MAX_MS) });
        return out;
      } catch (error) {
        process.kill(-shell.pid!, 'SIGKILL');
        throw error;
      }
    };

    it.each([true, false])('a host stops with the shell; on an older Node: %s', async (isOld) => {
      expect(await stopped(isOld, 'shell')).toMatch(/"msg":"stopping".*"msg":"stopped"/s);
    });

    it.each([true, false])('a host that gets the signal too stops gracefully; on an older Node: %s', async (isOld) => {
      expect(await stopped(isOld, 'group')).toMatch(/"msg":"stopping".*"msg":"stopped"/s);
    });
  });
});

import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { killableHosts } from '../support/killed.ts';

/** What lies on the disk is for the user of the host alone, and an operator who left something open is told. */

const { start, kill, newFolder } = killableHosts();
const SECRET = 'a secret of thirty-two characters';

describe('the data folder', () => {
  it('is created for the user of the host alone, with everything in it', async () => {
    const folder = join(newFolder(), 'data');
    const host = await start({ CAPSTAN_DATA: folder });
    await host.as('editor').run('conformance-noop');
    expect(modes(folder)).toEqual(expectedModes(folder));
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['capstan.db', 'capstan.db-wal', 'owner.lock']));
    await kill(host);
  });

  it('that is open to others is closed at the next start', async () => {
    const folder = join(newFolder(), 'data');
    mkdirSync(folder);
    for (const name of ['capstan.db', 'owner.lock']) writeFileSync(join(folder, name), '');
    for (const path of ['', 'capstan.db', 'owner.lock']) chmodSync(join(folder, path), 0o777);
    const host = await start({ CAPSTAN_DATA: folder });
    expect(modes(folder)).toEqual(expectedModes(folder));
    await kill(host);
  });
});

describe('a start without a secret', () => {
  it('warns of what that means, and one with a secret does not', async () => {
    const without = await start({ CAPSTAN_DATA: newFolder() });
    expect(without.output()).toContain('CAPSTAN_SECRET is not set');
    await kill(without);
    const sealed = await start({ CAPSTAN_DATA: newFolder(), CAPSTAN_SECRET: SECRET });
    expect(sealed.output()).not.toContain('CAPSTAN_SECRET');
    await kill(sealed);
  });
});

/** The permissions of a folder and of each file in it. */
function modes(folder: string): Record<string, string> {
  const paths = ['.', ...readdirSync(folder)];
  return Object.fromEntries(paths.map((path) => [path, (statSync(join(folder, path)).mode & 0o777).toString(8)]));
}

function expectedModes(folder: string): Record<string, string> {
  return Object.fromEntries(['.', ...readdirSync(folder)].map((path) => [path, path === '.' ? '700' : '600']));
}

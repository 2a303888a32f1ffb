import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { localHosts } from '../support/local-hosts.ts';

/** What lies on the disk is for the user of the host alone, and an operator who left something open is told. */

const { start, newFolder } = localHosts();
const SECRET = 'a secret of thirty-two characters';

describe('the data folder', () => {
  it('is created for the user of the host alone, with everything in it', async () => {
    const folder = join(newFolder(), 'data');
    const host = await start({ CAPSTAN_DATA: folder });
    await host.as('editor').run('conformance-noop');
    const files = ['capstan.db', 'capstan.db-wal', 'owner.lock'];
    expectPrivate(folder, files);
    await host.stop();
  });

  it('that is open to others is closed at the next start', async () => {
    const folder = join(newFolder(), 'data');
    mkdirSync(folder);
    for (const name of ['capstan.db', 'owner.lock']) writeFileSync(join(folder, name), '');
    for (const path of ['', 'capstan.db', 'owner.lock']) chmodSync(join(folder, path), 0o777);
    const host = await start({ CAPSTAN_DATA: folder });
    expectPrivate(folder, ['capstan.db', 'owner.lock']);
    await host.stop();
  });
});

describe('a start without a secret', () => {
  it('warns of what that means, and one with a secret does not', async () => {
    const without = await start({ CAPSTAN_DATA: newFolder() });
    expect(without.output()).toContain('CAPSTAN_SECRET is not set');
    await without.stop();
    const sealed = await start({ CAPSTAN_DATA: newFolder(), CAPSTAN_SECRET: SECRET });
    expect(sealed.output()).not.toContain('CAPSTAN_SECRET');
    await sealed.stop();
  });
});

/** The folder and each file in it are for their owner, and these files are there. */
function expectPrivate(folder: string, files: readonly string[]): void {
  const found = readdirSync(folder);
  expect(found).toEqual(expect.arrayContaining([...files]));
  const open = ['.', ...found].filter((path) => (statSync(join(folder, path)).mode & 0o077) !== 0);
  expect(open).toEqual([]);
}

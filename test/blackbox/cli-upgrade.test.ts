import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { VERSION } from '../../src/version.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { localHosts } from '../support/local-hosts.ts';

const { start } = localHosts();

describe('capstan upgrade check', () => {
  const check = (environment: Record<string, string>, ...flags: string[]) =>
    capstan(['upgrade', 'check', ...flags], { environment });

  it('shows the running hosts and their version, and what a start would apply', { timeout: 60_000 }, async () => {
    const environment = { DATABASE_URL: await migratedDatabase(inject('postgresUrl')) };
    const host = await start(environment);
    const fits = await check(environment);
    expect(fits).toMatchObject({ code: 0, output: expect.stringContaining(`capstan ${VERSION} can be started`) });
    expect(fits.output).toMatch(new RegExp(`host-\\w+ {2}${VERSION.replaceAll('.', '\\.')}`));

    const database = new pg.Client(environment.DATABASE_URL);
    await database.connect();
    await database.query("DELETE FROM migrations WHERE id IN ('core/0010', 'core/0012')");
    const older = await check(environment, '--json');
    expect(older.code).toBe(0);
    expect(JSON.parse(older.output)).toMatchObject({
      isPossible: true,
      steps: [
        { id: 'core/0010', effect: 'pause' },
        { id: 'core/0012', effect: 'beside' },
      ],
      hosts: [{ version: VERSION }],
    });

    await database.query("INSERT INTO migrations (id, applied_at) VALUES ('core/9001', 0)");
    const newer = await check(environment);
    expect(newer).toMatchObject({ code: 1, output: expect.stringContaining('newer version of Capstan') });
    await database.end();
    await host.stop();
  });

  it('looks at an embedded store, and says when there is no way to a database', { timeout: 60_000 }, async () => {
    const folder = freshFolder();
    expect(await check({ CAPSTAN_DATA: folder.path })).toMatchObject({
      code: 0,
      output: expect.stringContaining('core/0001'),
    });
    const host = await start({ CAPSTAN_DATA: folder.path });
    expect(await check({}, '--data', folder.path)).toMatchObject({
      code: 0,
      output: expect.stringContaining('The schema is up to date.'),
    });
    expect((await check({}, '--data', folder.path)).output).toMatch(
      new RegExp(`Running now:\\n {7}host-\\w+ {2}${VERSION.replaceAll('.', '\\.')}\\n {5}Stop it before`),
    );
    await host.stop();
    expect((await check({}, '--data', folder.path)).output).toContain('No host is running on it.');
    folder.remove();
    expect(await check({}, '--data', folder.path)).toMatchObject({
      code: 2,
      output: expect.stringContaining(`There is no data folder ${folder.path}.`),
    });
    expect((await check({ DATABASE_URL: 'postgres://127.0.0.1:1/none' })).code).toBe(4);
  });
});

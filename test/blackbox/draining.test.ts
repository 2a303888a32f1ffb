import { describe, expect, inject, it } from 'vitest';
import { migratedDatabase, writeStore } from '../support/database.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { killableHosts } from '../support/killed.ts';
import { runProgram } from '../support/process.ts';
import { STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Stopping and upgrading: nobody is led to a host that is about to go, and none starts that is too old for its store. */

const { start, newFolder } = killableHosts();
const twoSteps = workflow([node('a'), node('b')], line('a', 'b'));

describe('a host that gets SIGTERM', () => {
  it('says that it is not ready, serves requests for a while, and ends', { timeout: 60_000 }, async () => {
    const host = await start({ CAPSTAN_DATA: newFolder(), CAPSTAN_DRAIN_MS: '5000' });
    const api = host.as('editor');
    const id = await register(api, twoSteps);
    expect((await api.get('/readyz')).status).toBe(200);
    host.signal('SIGTERM');
    const unready = await until(
      () => api.get('/readyz'),
      ({ status }) => status === 503,
    );
    expect(unready.body.message).toBe('The host is stopping.');
    expect((await api.get('/healthz')).status).toBe(200);
    const runId = await api.run(id);
    expect((await api.ended(runId)).status).toBe('completed');
    expect(await host.exit).toBe(0);
  });

  it('tells readers of streams when to come back, and that it goes', { timeout: 60_000 }, async () => {
    const host = await start({ CAPSTAN_DATA: newFolder() });
    const api = host.as('editor');
    const id = await register(api, workflow([node('a', 'core.delay', { config: { ms: 600_000 } })], []));
    const runId = await api.run(id);
    const response = await fetch(`${host.url}/v1/runs/${runId}/events`, {
      headers: { authorization: `Bearer ${KEYS.editor.key}`, accept: 'text/event-stream' },
    });
    host.signal('SIGTERM');
    const text = await response.text();
    expect(text).toContain('\nretry: 1000\n\n');
    expect(text.endsWith(':closing, connect again\n\n')).toBe(true);
    expect(await host.exit).toBe(0);
  });
});

describe.each(STORES)('a host that is older than its store, on %s', (kind) => {
  it('does not start, and says why', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    const databaseUrl = kind === 'postgres' ? await migratedDatabase(inject('postgresUrl')) : undefined;
    const host = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder, databaseUrl });
    await host.stop();
    await writeStore(host.config, [`INSERT INTO migrations (id, applied_at) VALUES ('core/9999', 0)`]);
    const store = databaseUrl === undefined ? { CAPSTAN_DATA: folder } : { DATABASE_URL: databaseUrl };
    const { code, output } = await runProgram(['serve'], { PORT: '0', CAPSTAN_LOG: 'silent', ...store });
    expect(code).toBe(1);
    expect(output).toContain('A newer version of Capstan has used this store (core/9999)');
  });
});

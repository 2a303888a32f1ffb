import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../support/api.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { killableHosts } from '../support/killed.ts';
import { localHosts } from '../support/local-hosts.ts';
import { runProgram } from '../support/process.ts';
import { recorder } from '../support/recorder/recorder.ts';
import { until } from '../support/until.ts';

/** Nothing is acknowledged that would not be there after a restart, and damage is named before anything builds on it. */

const { start, stop, kill, newFolder } = killableHosts();
const { start: startHere, newStore } = localHosts();
const twoSteps = workflow([node('a'), node('b')], line('a', 'b'));

describe('a host on SQLite', () => {
  it.each([
    ['its database file is deleted', (folder: string) => rmSync(join(folder, 'capstan.db'))],
    ['its write-ahead log is deleted', (folder: string) => rmSync(join(folder, 'capstan.db-wal'))],
    ['its folder is deleted', (folder: string) => rmSync(folder, { recursive: true })],
  ])('acknowledges nothing more, and is not ready, once %s', { timeout: 60_000 }, async (_, destroy) => {
    recorder.excuse(500);
    const store = await newStore('sqlite');
    const host = await startHere(store);
    const api = host.as('editor');
    const id = await register(api, twoSteps);
    destroy(store.CAPSTAN_DATA!);
    const refused = await api.post('/v1/runs', { workflowId: id });
    expect(refused.status).toBeGreaterThanOrEqual(500);
    const ready = await until(
      () => api.get('/readyz'),
      ({ status }) => status !== 200,
    );
    expect(ready.status).toBe(503);
    await until(
      async () => host.output(),
      (output) => output.includes('was deleted or replaced while the host was using it'),
    );
    await host.stop();
  });

  it('goes on where it was when its file is put back', { timeout: 60_000 }, async () => {
    recorder.excuse(500);
    const store = await newStore('sqlite');
    const host = await startHere(store);
    const api = host.as('editor');
    const id = await register(api, twoSteps);
    const file = join(store.CAPSTAN_DATA!, 'capstan.db');
    renameSync(file, `${file}.moved`);
    expect((await api.post('/v1/runs', { workflowId: id })).status).toBeGreaterThanOrEqual(500);
    renameSync(`${file}.moved`, file);
    const created = await until(
      () => api.post('/v1/runs', { workflowId: id }),
      ({ status }) => status === 201,
    );
    expect((await api.ended(created.body.runId)).status).toBe('completed');
    await host.stop();
  });

  it('writes nothing more once another process has its folder, lock file or not', { timeout: 60_000 }, async () => {
    recorder.excuse(500);
    const folder = newFolder();
    const first = await start({ CAPSTAN_DATA: folder });
    const id = await register(first.as('editor'), twoSteps);
    rmSync(join(folder, 'owner.lock'));
    const second = await start({ CAPSTAN_DATA: folder });
    const create = (host: typeof first): Promise<Answer> => host.as('editor').post('/v1/runs', { workflowId: id });
    expect((await create(first)).status).toBeGreaterThanOrEqual(500);
    const created = await create(second);
    expect((await second.as('editor').ended(created.body.runId)).status).toBe('completed');
    expect((await first.as('editor').get('/readyz')).status).toBe(503);
    await until(
      async () => first.output(),
      (output) => output.includes('another process has taken over the data folder'),
    );
    await kill(first);
    await stop(second);
  });

  it('says what it lost to a damaged write-ahead log, and goes on from before', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    const host = await start({ CAPSTAN_DATA: folder });
    const api = host.as('editor');
    const id = await register(api, twoSteps);
    const first = await api.run(id);
    await api.ended(first);
    const wal = join(folder, 'capstan.db-wal');
    const at = readFileSync(wal).length;
    const later = [await api.run(id), await api.run(id), await api.run(id)];
    for (const runId of later) await api.ended(runId);
    await kill(host);
    const bytes = readFileSync(wal);
    bytes[at + 2_000] = bytes[at + 2_000]! ^ 0xff;
    writeFileSync(wal, bytes);
    const again = await start({ CAPSTAN_DATA: folder });
    expect(again.output()).toContain('the write-ahead log is damaged');
    for (const runId of later) expect(again.output()).toContain(runId);
    expect(existsSync(`${wal}.damaged`)).toBe(true);
    expect((await again.as('editor').ended(first)).status).toBe('completed');
    await stop(again);
  });

  it('does not start on a damaged file, and says what to do', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    const host = await startHere({ CAPSTAN_DATA: folder });
    await register(host.as('editor'), twoSteps);
    await host.stop();
    const file = join(folder, 'capstan.db');
    expect(existsSync(`${file}-wal`)).toBe(false);
    const bytes = readFileSync(file);
    // Every third page from the tenth on, as a disk that loses blocks leaves them.
    for (let page = 10; (page + 1) * 4_096 <= bytes.length; page += 3)
      bytes.fill(0x5a, page * 4_096, (page + 1) * 4_096);
    writeFileSync(file, bytes);
    const { code, output } = await runProgram(['serve'], { PORT: '0', CAPSTAN_DATA: folder, CAPSTAN_LOG: 'silent' });
    expect(code).toBe(1);
    expect(output).toContain('is damaged');
    expect(output).toContain('capstan verify');
    expect(output).toContain('restore the last backup');
  });
});

import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, inject, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { freshDatabase } from '../support/database.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { localHosts } from '../support/local-hosts.ts';
import { type ProcessEnd, runProgram } from '../support/process.ts';

/** A backup ends while the host works, holds what was acknowledged before it began, and can be started from. */

const { start, stop, newFolder } = killableHosts();
const { start: startHere } = localHosts();
const twoSteps = workflow([node('a'), node('b')], line('a', 'b'));

/** Gives the command in a process of its own, as others than the host do. */
const besides = (folder: string, ...args: string[]): Promise<ProcessEnd> => runProgram(args, { CAPSTAN_DATA: folder });
const within = (folder: string, ...args: string[]) => capstan(args, { environment: { CAPSTAN_DATA: folder } });

/** Starts runs, a few at a time, until it is told to stop. */
function load(api: Api, workflowId: string): () => Promise<number> {
  let isOver = false;
  const worker = async (): Promise<number> => {
    let made = 0;
    for (; !isOver; made++) await api.run(workflowId);
    return made;
  };
  const workers = Promise.all(Array.from({ length: 4 }, worker));
  return async () => {
    isOver = true;
    return (await workers).reduce((sum, made) => sum + made, 0);
  };
}

describe('capstan backup', () => {
  it('ends under load, and a host goes on from the copy', { timeout: 120_000 }, async () => {
    const folder = newFolder();
    const host = await start({ CAPSTAN_DATA: folder });
    const api = host.as('editor');
    const id = await register(api, twoSteps);
    const before = await Promise.all(Array.from({ length: 40 }, () => api.run(id)));
    for (const runId of before) await api.ended(runId);
    const endLoad = load(api, id);
    const copy = newFolder();
    const file = join(copy, 'capstan.db');
    const { code, output } = await besides(folder, 'backup', file, '--json');
    const during = await endLoad();
    expect(code, output).toBe(0);
    const report = JSON.parse(output);
    expect(report).toMatchObject({ isSound: true, problems: [], logs: { damaged: [], withoutDigest: 0 } });
    expect(report.logs.runs).toBeGreaterThanOrEqual(before.length);
    expect(report.logs.runs).toBeLessThanOrEqual(before.length + during);
    expect(statSync(file).mode & 0o077).toBe(0);
    const restored = await start({ CAPSTAN_DATA: copy });
    for (const runId of before) expectSoundLog(await restored.as('editor').events(runId));
    await stop(restored);
    await stop(host);
  });

  it('copies the folder of a host that is stopped, and never over a file', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    const host = await startHere({ CAPSTAN_DATA: folder });
    await host.as('editor').run(await register(host.as('editor'), twoSteps));
    const file = join(folder, 'copy.db');
    writeFileSync(file, 'mine');
    const refused = await besides(folder, 'backup', file);
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('already exists') });
    await host.stop();
    const { code, output } = await within(folder, 'backup', `${file}.2`);
    expect(code, output).toBe(0);
    expect(output).toMatch(/\d+ runs with \d+ events, 0 of them without a digest/);
    expect(existsSync(`${file}.2.partial`)).toBe(false);
  });

  it('leaves PostgreSQL to its own tools', async () => {
    const { code, output } = await capstan(['backup', 'x.db'], {
      environment: { DATABASE_URL: 'postgres://nobody@127.0.0.1/none' },
    });
    expect(code).toBe(2);
    expect(output).toContain('pg_dump');
  });
});

describe('capstan verify', () => {
  it('names the runs that are not what was written, and leaves the store as it is', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    const host = await startHere({ CAPSTAN_DATA: folder });
    const api = host.as('editor');
    const id = await register(api, twoSteps);
    const [changed, cut, sound] = [await api.run(id), await api.run(id), await api.run(id)];
    for (const runId of [changed, cut, sound]) await api.ended(runId!);
    const busy = await besides(folder, 'verify');
    expect(busy).toMatchObject({
      code: 1,
      output: expect.stringMatching(/^Another process, probably a running host, is using .*`capstan backup`/),
    });
    await host.stop();
    expect((await within(folder, 'verify')).code).toBe(0);
    const database = new DatabaseSync(join(folder, 'capstan.db'));
    database.exec(`UPDATE events SET body = replace(body, '"a"', '"x"') WHERE run_id = '${changed}' AND sequence = 1`);
    database.exec(`DELETE FROM events WHERE run_id = '${cut}' AND sequence > 2`);
    database.exec(`DROP TRIGGER audit_entries_no_update`);
    database.exec(`UPDATE audit_entries SET actor = 'somebody else' WHERE sequence = 1`);
    database.close();
    const { code, output } = await within(folder, 'verify');
    expect(code).toBe(1);
    expect(output).toContain(`${changed}: an event up to`);
    expect(output).toContain(`${cut}: it ends before event 3`);
    expect(output).not.toContain(`${sound}:`);
    expect(output).toContain('broken at 1');
  });

  it('says of a file that it is not there, or that it is no database, once', async () => {
    const folder = newFolder();
    const [absent, text] = [join(folder, 'absent.db'), join(folder, 'text.db')];
    writeFileSync(text, 'This is a text, and no database of any kind.\n'.repeat(100));
    expect(await capstan(['verify', absent])).toMatchObject({ code: 1, err: `There is no file ${absent}.\n` });
    expect(await capstan(['verify', text])).toMatchObject({
      code: 1,
      out: `BAD  ${text}\nBAD  file is not a database\n`,
    });
  });

  it('reads a PostgreSQL database while a host uses it', { timeout: 60_000 }, async () => {
    const url = await freshDatabase(inject('postgresUrl'));
    const host = await startHere({ DATABASE_URL: url });
    const api = host.as('editor');
    const runId = await api.run(await register(api, twoSteps));
    await api.ended(runId);
    const { code, output } = await capstan(['verify', '--database-url', url]);
    expect(code, output).toBe(0);
    expect(output).toMatch(/\d+ runs with \d+ events, 0 of them without a digest/);
    await host.stop();
  });
});

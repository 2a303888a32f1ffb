import { describe, expect, inject, it } from 'vitest';
import { MIGRATIONS } from '../../src/host.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import type { Migration } from '../../src/store/store.ts';
import { realClock } from '../../src/system/real.ts';
import { migratedDatabase } from '../support/database.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { type HostProcess, runProgram } from '../support/process.ts';

/** Hosts are upgraded one after the other: while the next version migrates the database, this one goes on. */

const { start, stop } = killableHosts();

/** What a next version may bring: it widens tables that are read and written all the time. */
const NEXT: readonly Migration[] = [
  { id: 'core/9001', statements: ['ALTER TABLE runs ADD COLUMN next_version TEXT'] },
  { id: 'core/9002', statements: ["ALTER TABLE work ADD COLUMN next_version TEXT NOT NULL DEFAULT 'x'"] },
  { id: 'core/9003', statements: ['CREATE TABLE next_version (id TEXT PRIMARY KEY)'] },
  { id: 'core/9004', statements: ['CREATE INDEX events_next_version ON events (type, run_id)'] },
  { id: 'core/9005', statements: ['ALTER TABLE interrupts ADD COLUMN next_version TEXT'] },
  { id: 'core/9006', statements: ['ALTER TABLE definitions ADD COLUMN next_version BIGINT'] },
];
const CALLERS = 6;

describe('an older host beside a newer one', () => {
  it('fails no request and loses nothing while tables change under it, and is not started anew on them', {
    timeout: 90_000,
  }, async () => {
    const environment = { DATABASE_URL: await migratedDatabase(inject('postgresUrl')), CAPSTAN_LEASE_MS: '2000' };
    const [one, two] = await Promise.all([start(environment), start(environment)]);
    const { accepted, stopCalling } = callAgain([one, two]);
    await accepted(30);
    for (const count of NEXT.keys()) {
      const migrations = [...MIGRATIONS, ...NEXT.slice(0, count + 1)];
      const newer = await openPostgres({ url: environment.DATABASE_URL, clock: realClock, migrations });
      await newer.close();
      await accepted(15);
    }
    const runs = await stopCalling();
    for (const runId of runs) {
      expect((await two.as('editor').ended(runId)).status).toBe('completed');
      expectSoundLog(await one.as('editor').events(runId));
    }
    const again = await runProgram(['serve'], { ...environment, PORT: '0', CAPSTAN_LOG: 'silent' });
    expect(again.code).toBe(1);
    expect(again.output).toContain('A newer version of Capstan has used this store');
    for (const host of [one, two]) await stop(host);
  });
});

/** Callers that start runs one after the other, and try nothing again: every answer must be the right one. */
function callAgain(hosts: readonly HostProcess[]) {
  const runs: string[] = [];
  let isOver = false;
  let onAccepted = (): void => {};
  const calling = Array.from({ length: CALLERS }, async (_, index) => {
    const api = hosts[index % hosts.length]!.as('editor');
    while (!isOver) {
      const runId = await api.run('conformance-multi-node');
      const { status, text } = await api.get(`/v1/runs/${runId}`);
      if (status !== 200) throw new Error(`${status} ${text}`);
      runs.push(runId);
      onAccepted();
    }
  });
  const ended = Promise.all(calling);
  return {
    /** Settles once so many more were accepted; fails with the first call that failed. */
    accepted: async (more: number) => {
      const goal = runs.length + more;
      const reached = new Promise<void>((resolve) => {
        onAccepted = () => void (runs.length >= goal && resolve());
      });
      await Promise.race([reached, ended]);
    },
    stopCalling: async () => {
      isOver = true;
      await ended;
      return runs;
    },
  };
}

import pg from 'pg';
import { expect, inject, it } from 'vitest';
import { openPostgres } from '../../src/store/postgres.ts';
import { addWork, claimDue, freeOrphans } from '../../src/store/queue.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { realClock } from '../../src/system/real.ts';
import { freshDatabase } from '../support/database.ts';

/** Hosts do not wait for each other when they look for work: what another has locked is passed over. */

it('claims pass over items that another host has locked', async () => {
  const url = await freshDatabase(inject('postgresUrl'));
  const store = await openPostgres({ url, clock: realClock, migrations: CORE_TABLES });
  const other = new pg.Client(url);
  await other.connect();
  const item = (workId: string, owner?: string) => addWork({ workId, kind: 'test', tenant: 'alpha', dueAt: 0, owner });
  await store.commit([item('locked'), item('free'), item('locked-orphan', 'gone'), item('free-orphan', 'gone')]);
  await other.query("BEGIN; SELECT * FROM work WHERE work_id LIKE 'locked%' FOR UPDATE");
  const claimed = await store.commit([claimDue('host-a', 10)]);
  expect(claimed).toMatchObject({ committed: true, rows: [[{ work_id: 'free' }]] });
  const freed = await store.commit([freeOrphans(10, { kind: 'run', strikesMax: 2 })]);
  expect(freed).toMatchObject({ committed: true, rows: [[{ work_id: 'free-orphan' }]] });
  await other.query('ROLLBACK');
  await other.end();
  await store.close();
});

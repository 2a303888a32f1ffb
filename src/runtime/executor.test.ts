import { expect, it } from 'vitest';
import { openServiceHost } from '../../test/support/service-host.ts';
import { addWork } from '../store/queue.ts';
import { sql } from '../store/sql.ts';

it('returns what a claim brings that was under way when it was told to stop', async () => {
  const claiming = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { host, store, clock, close } = await openServiceHost({
    beforeCommit: async (unit) => {
      if (!unit.some((write) => 'sql' in write && write.sql.includes('UPDATE work SET owner = $1, epoch'))) return;
      claiming.resolve();
      await release.promise;
    },
  });
  const workId = 'later';
  await store.commit([addWork({ workId, kind: 'test', tenant: 't', payload: '', dueAt: clock.now() })]);
  await host.executor.start();
  await claiming.promise;
  const stopped = host.executor.stop(0);
  release.resolve();
  await stopped;
  const rows = await store.read(sql('SELECT owner, due_at FROM work WHERE work_id = $1', workId));
  expect(rows).toEqual([{ owner: null, due_at: clock.now() }]);
  await close();
});

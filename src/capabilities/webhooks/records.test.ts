import fc from 'fast-check';
import { expect, it } from 'vitest';
import { freshFolder } from '../../../test/support/database.ts';
import { sql } from '../../store/sql.ts';
import { openSqlite } from '../../store/sqlite.ts';
import { CORE_TABLES } from '../../store/tables.ts';
import { realClock } from '../../system/real.ts';
import { insertWebhook, listFrom, listText, openLanes, WEBHOOK_TABLES, type WebhookRow } from './records.ts';

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('"', '\\', ',', 'a', 'b', 'A', '%', '_', '[', ']'), { maxLength: 6 })
    .map((each) => each.join('')),
);

it('a list comes back from its column as it went in', () => {
  fc.assert(
    fc.property(fc.array(anyText), (members) => {
      expect(listFrom(listText(members))).toEqual(members);
    }),
  );
});

it('a member of a list is found, and nothing else is taken for one', () => {
  fc.assert(
    fc.property(fc.array(anyText), anyText, (members, wanted) => {
      expect(listText(members).includes(listText([wanted]))).toBe(members.includes(wanted));
    }),
  );
});

it('a lane is opened exactly where type, tags and scope fit', async () => {
  const folder = freshFolder();
  const store = await openSqlite({
    folder: folder.path,
    clock: realClock,
    migrations: [...CORE_TABLES, ...WEBHOOK_TABLES],
    durable: false,
  });
  const few = fc.uniqueArray(fc.constantFrom('a', 'b', 'B', 'a,b', '"a"', 'c'), { maxLength: 3 });
  const where = fc.record({
    tenant: fc.constantFrom('t', 'u'),
    workspace: fc.option(fc.constantFrom('n', 's'), { nil: undefined }),
  });
  const filters = fc.record({ scope: where, events: few.filter((list) => list.length > 0), tags: few });
  await fc.assert(
    fc.asyncProperty(fc.array(filters, { maxLength: 5 }), filters, async (webhooks, run) => {
      await store.commit([
        { sql: 'DELETE FROM webhooks', params: [] },
        { sql: 'DELETE FROM work', params: [] },
        ...webhooks.map(({ scope, events, tags }, index) =>
          insertWebhook({ ...ROW, ...rowScope(scope), webhook_id: `wh-${index}`, ...texts({ events, tags }) }, 10),
        ),
        openLanes({ ...run.scope, runId: 'run-1', tags: run.tags, types: run.events }, 'lane'),
      ]);
      const opened = await store.read<{ work_id: string }>(sql('SELECT work_id FROM work ORDER BY work_id'));
      const wanted = webhooks.flatMap(({ scope, events, tags }, index) => {
        const isInScope =
          scope.tenant === run.scope.tenant &&
          (scope.workspace === undefined || scope.workspace === run.scope.workspace);
        const isWanted = events.some((type) => run.events.includes(type));
        const isTagged = tags.length === 0 || tags.some((tag) => run.tags.includes(tag));
        return isInScope && isWanted && isTagged ? [`webhook:wh-${index}:run-1`] : [];
      });
      expect(opened.map(({ work_id }) => work_id)).toEqual(wanted);
    }),
  );
  await store.close();
  folder.remove();
});

const ROW: WebhookRow = {
  webhook_id: '',
  tenant: '',
  workspace: null,
  scope_name: '',
  events: '',
  tags: '',
  sealed: '',
  fingerprint: '',
  created_by: '',
  created_at: 0,
  rotated_at: null,
};

function rowScope({ tenant, workspace }: { tenant: string; workspace: string | undefined }) {
  return { tenant, workspace: workspace ?? null };
}

function texts({ events, tags }: { events: string[]; tags: string[] }) {
  return { events: listText(events), tags: listText(tags) };
}

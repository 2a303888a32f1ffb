import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { sql } from '../../../store/sql.ts';
import { openInMemory } from '../../../store/sqlite.ts';
import { CORE_TABLES } from '../../../store/tables.ts';
import { realClock } from '../../../system/real.ts';
import {
  type DeliveryRow,
  forgetDeliveries,
  insertWebhook,
  listDeliveries,
  listFrom,
  listText,
  recordAttempt,
  startDeliveries,
  WEBHOOK_TABLES,
  type WebhookRow,
} from './records.ts';
import { newCursor } from './rules.ts';

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

it('a delivery starts exactly where type, tags and scope match', async () => {
  const store = await openInMemory({
    clock: realClock,
    migrations: [...CORE_TABLES, ...WEBHOOK_TABLES],
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
        startDeliveries({ ...run.scope, runId: 'run-1', tags: run.tags, types: run.events }, newCursor(0)),
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
});

it('the outcome of a delivery is deleted when its time is over, and not before', async () => {
  const clock = new ManualClock();
  const store = await openInMemory({ clock, migrations: WEBHOOK_TABLES });
  const attempt = (id: string, expiresAt: number) =>
    recordAttempt({ ...ATTEMPT, delivery_id: id, expires_at: expiresAt });
  await store.commit([attempt('dlv-short', clock.now() + 10), attempt('dlv-long', clock.now() + 20)]);
  await store.commit([attempt('dlv-long', clock.now() + 30)]);
  const left = async () => {
    await store.commit([forgetDeliveries(10)]);
    const rows = await store.read<DeliveryRow>(listDeliveries('t', 'wh-1', undefined, undefined, 10));
    return rows.map(({ delivery_id, attempts }) => `${delivery_id} ${attempts}`);
  };
  expect(await left()).toEqual(['dlv-short 1', 'dlv-long 2']);
  clock.advance(10);
  expect(await left()).toEqual(['dlv-long 2']);
  clock.advance(20);
  expect(await left()).toEqual([]);
  await store.close();
});

const ATTEMPT = {
  webhook_id: 'wh-1',
  tenant: 't',
  run_id: 'run-1',
  sequence: 0,
  event_type: 'run.started',
  state: 'pending',
  attempted_at: 0,
  due_at: null,
  status: 500,
  error: null,
} as const;

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
  run_id: '',
};

function rowScope({ tenant, workspace }: { tenant: string; workspace: string | undefined }) {
  return { tenant, workspace: workspace ?? null };
}

function texts({ events, tags }: { events: string[]; tags: string[] }) {
  return { events: listText(events), tags: listText(tags) };
}

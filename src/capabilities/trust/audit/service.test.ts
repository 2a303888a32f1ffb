import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { and, changeOf, commitOrThrow, perform } from '../../../runtime/change.ts';
import { entryBy } from './door.ts';
import { AUDIT_TABLES } from './records.ts';
import { CHECKPOINT_ENTRIES } from './sealer.ts';
import { AuditService } from './service.ts';

const host = await openCapabilityHost({ tables: AUDIT_TABLES });
afterAll(() => host.close());

const OPTIONS = {
  auditRequests: false,
  auditKey: undefined,
  auditSigners: [],
  auditRoots: [],
  auditAnchors: [],
  auditAnchorToken: undefined,
  secret: undefined,
  apiKeys: [],
};
const audit = new AuditService(host, OPTIONS);
await audit.prepare();

const ada = callerAs('ada');
const bound = { ...ada, subject: { ...ada.subject, workspace: 'north' } };
const targets = async (caller = ada): Promise<unknown[]> =>
  (await audit.list(caller, {}, 100)).map(({ target }) => target);

it('lists an entry as soon as the change that it is part of is performed', async () => {
  await perform(host.runtime, async () => entryBy(audit, ada.subject, 'schedule.create', 'sch-1', { every: 5 }));
  const [entry] = await audit.list(ada, {}, 1);
  expect(entry).toMatchObject({
    tenant: 'alpha',
    actor: 'ada',
    action: 'schedule.create',
    target: 'sch-1',
    outcome: 'success',
    details: '{"every":5}',
  });
});

it('has no entry of a change that was refused', async () => {
  const impossible = { sql: 'DELETE FROM work WHERE work_id = $1', params: ['none'], expect: 1, expectation: 'work' };
  const gone = { refused: 'not_found', message: 'There is no such work item.' } as const;
  const change = changeOf(undefined, [impossible], { refusals: { work: gone } });
  const outcome = await perform(host.runtime, async () =>
    and(change, entryBy(audit, ada.subject, 'schedule.remove', 'sch-2')),
  );
  expect(outcome).toEqual(gone);
  expect(await targets()).not.toContain('sch-2');
});

it('shows a caller of one workspace what happened there, and exports nothing to it', async () => {
  await perform(host.runtime, async () => entryBy(audit, bound.subject, 'schedule.create', 'sch-north'));
  expect(await targets(bound)).toEqual(['sch-north']);
  expect(await targets()).toContain('sch-north');
  expect(await audit.export(bound, {})).toMatchObject({ refused: 'forbidden' });
});

it('seals records of two hosts into one chain without gaps', async () => {
  const other = new AuditService(host, OPTIONS);
  await other.prepare();
  expect(other.publicKey).toBe(audit.publicKey);
  const record = (service: AuditService, target: string) =>
    perform(host.runtime, async () => entryBy(service, ada.subject, 'schedule.create', target));
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const service = index % 2 === 0 ? audit : other;
      await record(service, `sch-by-${index}`);
      await service.list(ada, {}, 1);
    }),
  );
  expect(await audit.verify(ada, {})).toMatchObject({ chainValid: true, anomalies: [] });
  expect(new Set((await targets()).filter((target) => String(target).startsWith('sch-by-'))).size).toBe(20);
});

it('begins a log when a tenant first asks for it', async () => {
  const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
  expect(await audit.verify(stranger, {})).toMatchObject({ chainValid: true });
  expect((await audit.list(stranger, {}, 10)).map(({ action }) => action)).toEqual(['audit.opened']);
});

it('lists everything that was recorded before, also where a checkpoint falls among it', async () => {
  const gamma = { ...ada, subject: { ...ada.subject, tenant: 'gamma' } };
  const record = (count: number) =>
    commitOrThrow(
      host.runtime.store,
      Array.from({ length: count }, (_, index) =>
        audit.record({ tenant: 'gamma', actor: 'ada', action: 'schedule.create', target: `sch-${index}` }),
      ).flat(),
    );
  const newest = async () => (await audit.list(gamma, {}, 1))[0]?.sequence;
  await record(1);
  expect(await newest()).toBe(1);
  await record(CHECKPOINT_ENTRIES - 50);
  expect(await newest()).toBe(CHECKPOINT_ENTRIES - 49);
  await record(150);
  expect(await newest()).toBe(CHECKPOINT_ENTRIES + 101);
  expect(await audit.verify(gamma, {})).toMatchObject({ chainValid: true, anomalies: [] });
});

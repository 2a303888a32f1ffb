import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { ADA, evaluator, performWithRival, STARTER_NEEDS, workItems } from '../../../../test/support/starters.ts';
import { makePlan } from '../../../engine/definition/plan.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { Schedule } from '../../../protocol/starting/schedules.ts';
import { type Decide, perform } from '../../../runtime/change.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { ListedRun } from '../../../store/log.ts';
import { listRuns } from '../../../store/run-lists.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { type RunStarter, RunStarters } from '../starter/door.ts';
import { StarterService } from '../starter/service.ts';
import { SCHEDULE_WORK, scheduleFamily } from './family.ts';
import { SCHEDULE_TABLES } from './records.ts';
import { ScheduleService } from './service.ts';

const report = workflow([node('a')], [], { id: 'report' });
const HOURLY = { workflowId: report.id, cron: '0 * * * *' };
const DAILY = { workflowId: report.id, cron: '0 6 * * *' };
const HOUR_MS = 60 * 60_000;

const goal: RunStarter = {
  ownerKind: 'goal',
  start: async () => refuse('conflict', 'The goal is paused.'),
  observe: async () => null,
};
const opened = await openServiceHost({ tables: SCHEDULE_TABLES, nodes: NODES, extensions: [RunStarters.of(goal)] });
const { host, store, clock } = opened;
const { runtime } = host;
await registerShared(runtime, report);
const family = scheduleFamily(clock);
const schedules = new StarterService(host, STARTER_NEEDS, family);
const service = new ScheduleService(host, STARTER_NEEDS, schedules);
const evaluate = evaluator(opened, family);
afterAll(opened.close);

async function done<T>(decide: Decide<T>): Promise<T> {
  const outcome = await perform(runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
}
const create = (request = HOURLY): Promise<Schedule> => done(() => schedules.create(ADA, request));
const find = async (id: string): Promise<Schedule> => (await schedules.find(ADA, id)) as Schedule;
const due = (time: string | undefined): number => Date.parse(time!);

describe('a schedule', () => {
  it('waits for its next slot with a work item, and for none once it is removed', async () => {
    const { id, nextRunAt } = await create();
    expect(await workItems(opened, SCHEDULE_WORK)).toContainEqual([id, due(nextRunAt)]);
    await done(() => schedules.remove(ADA, id));
    expect((await workItems(opened, SCHEDULE_WORK)).map(([workId]) => workId)).not.toContain(id);
    expect(await schedules.find(ADA, id)).toMatchObject({ refused: 'not_found' });
  });

  it('is refused beyond the limit of its tenant', async () => {
    const few = new StarterService(host, STARTER_NEEDS, { ...family, limit: 0 });
    const refused = await perform(runtime, () => few.create(ADA, HOURLY));
    expect(refused).toMatchObject({ refused: 'conflict', details: { limit: 0 } });
  });

  it('is replaced by a decision that is taken again after a conflict', async () => {
    const { id } = await create();
    const rival = () => service.replace(ADA, id, { ...HOURLY, missed: 'once' as const });
    const { outcome, decisions } = await performWithRival(opened, () => service.replace(ADA, id, DAILY), rival);
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ cron: DAILY.cron, missed: 'skip' });
  });

  it('starts one run for a slot, however often it is evaluated', async () => {
    const { id, nextRunAt } = await create();
    expect(await evaluate(id), 'too early').toMatchObject({ dueAgainAt: due(nextRunAt), isCommitted: false });
    clock.advance(due(nextRunAt) - clock.now());
    expect(await evaluate(id)).toMatchObject({ dueAgainAt: due(nextRunAt) + HOUR_MS, isCommitted: true });
    expect(await evaluate(id)).toMatchObject({ dueAgainAt: due(nextRunAt) + HOUR_MS, isCommitted: false });
    const runs = await store.read<ListedRun>(listRuns(ADA.subject, { tag: `schedule:${id}` }, 10));
    const rows = await Promise.all(runs.map(({ run_id }) => runtime.reader.row(ADA.subject, run_id)));
    expect(rows.map((row) => factsOf(row!).metadata)).toEqual([{ scheduleId: id, scheduledFor: nextRunAt }]);
    expect(await find(id)).toMatchObject({ lastRunId: runs[0]!.run_id });
  });

  it('is over after its only run', async () => {
    const runAt = new Date(clock.now() + 1_000).toISOString();
    const { id } = await done(() => schedules.create(ADA, { workflowId: report.id, runAt }));
    clock.advance(1_000);
    expect((await evaluate(id)).dueAgainAt).toBeUndefined();
    expect(await find(id)).toMatchObject({ enabled: false });
    expect(await perform(runtime, () => schedules.lend(ADA, id, { kind: 'goal', id: 'g' }))).toMatchObject({
      details: { field: 'runAt' },
    });
  });
});

describe('a schedule with an owner', () => {
  it('asks its owner for runs, and is changed by its owner alone', async () => {
    const { id } = await create();
    await done(() => schedules.lend(ADA, id, { kind: 'goal', id: 'g' }));
    const refused = { refused: 'conflict', details: { belongsTo: 'goal:g' } };
    for (const change of [() => service.replace(ADA, id, DAILY), () => schedules.remove(ADA, id)]) {
      expect(await perform<unknown>(runtime, change)).toMatchObject(refused);
    }
    clock.advance(HOUR_MS);
    await evaluate(id);
    expect(await find(id)).toMatchObject({ lastError: { code: 'conflict', message: 'The goal is paused.' } });
    await done(async () => schedules.takeBack(ADA.subject, id));
    expect(await find(id)).toMatchObject({ enabled: false });
    expect((await find(id)).belongsTo).toBeUndefined();
    expect((await evaluate(id)).change, 'not armed').toBeUndefined();
  });
});

describe('the triggers of a workflow', () => {
  const plan = makePlan(report, 1);
  const synchronize = (wanted: object) =>
    done(() => service.synchronize(ADA.subject, { workflowId: report.id, plan }, new Map(Object.entries(wanted))));
  const owned = async () =>
    (await schedules.list(ADA, { workflowId: report.id }, 100))
      .filter(({ belongsTo }) => belongsTo !== undefined)
      .map(({ belongsTo, cron }) => [belongsTo, cron])
      .sort();

  it('become schedules, and only those that differ are changed', async () => {
    await synchronize({ hourly: HOURLY, daily: DAILY });
    expect(await owned()).toEqual([
      ['workflow:report/daily', DAILY.cron],
      ['workflow:report/hourly', HOURLY.cron],
    ]);
    const again = await service.synchronize(
      ADA.subject,
      { workflowId: report.id, plan },
      new Map(Object.entries({ hourly: HOURLY, daily: DAILY })),
    );
    expect(again).toMatchObject({ writes: [] });
    await synchronize({ daily: { ...DAILY, cron: '0 7 * * *' } });
    expect(await owned()).toEqual([['workflow:report/daily', '0 7 * * *']]);
  });
});

import type { Schedules } from '../../src/capabilities/starting/schedules/door.ts';
import { scheduleFamily } from '../../src/capabilities/starting/schedules/family.ts';
import type { RunRequest, StarterFamily } from '../../src/capabilities/starting/starter/family.ts';
import type { StarterColumns } from '../../src/capabilities/starting/starter/records.ts';
import { StarterService } from '../../src/capabilities/starting/starter/service.ts';
import { StarterWork } from '../../src/capabilities/starting/starter/work.ts';
import { type Decide, perform } from '../../src/runtime/change.ts';
import type { WorkResult } from '../../src/runtime/work-kind.ts';
import { sql } from '../../src/store/sql.ts';
import { callerOf, type ServiceHost } from './service-host.ts';

/** Stand-ins for what starters need: nothing is audited, and every input is accepted. */
export const STARTER_NEEDS = { audit: { record: () => [] }, runs: { check: async () => undefined } };

/** The tables of schedules, for tests of capabilities that use schedules. */
export { SCHEDULE_TABLES } from '../../src/capabilities/starting/schedules/records.ts';

/** Schedules, for tests of capabilities that use them. */
export function schedulesOn({ host, clock }: ServiceHost): Schedules {
  return new StarterService(host, STARTER_NEEDS, scheduleFamily(clock));
}

/** The tenant of the starters under test. */
export const TENANT = 'alpha';
/** Somebody of that tenant who may do everything. */
export const ADA = callerOf(TENANT);

/** Handles the work item of a starter as the executor does, without its lease, and commits what came of it. */
export function evaluator<Row extends StarterColumns, Request extends RunRequest, Document, Filter>(
  { host, store }: ServiceHost,
  family: StarterFamily<Row, Request, Document, Filter>,
): (id: string) => Promise<WorkResult & { readonly isCommitted: boolean }> {
  const { handle } = new StarterWork(host, STARTER_NEEDS, family);
  return async (id) => {
    const item = { work_id: id, tenant: TENANT, kind: '', payload: '', epoch: 0, wakes: 0, crashes: 0, strikes: 0 };
    const result = await handle(item);
    const isCommitted = result.change ? (await store.commit(result.change.writes)).committed : false;
    return { ...result, isCommitted };
  };
}

/** Performs a decision that finds, the first time, that somebody else has changed the same thing in between. */
export async function performWithRival<T>({ host }: ServiceHost, decide: Decide<T>, rival: Decide<unknown>) {
  let decisions = 0;
  const contested: Decide<T> = async () => {
    const change = await decide();
    if (decisions++ === 0) await perform(host.runtime, rival);
    return change;
  };
  const outcome = await perform(host.runtime, contested);
  return { outcome, decisions };
}

/** Ids of work items, with when they are due. */
export async function workItems({ store }: ServiceHost, kind: string): Promise<[string, number | null][]> {
  const statement = sql('SELECT work_id, due_at FROM work WHERE kind = $1 ORDER BY work_id', kind);
  const rows = await store.read<{ work_id: string; due_at: number | null }>(statement);
  return rows.map(({ work_id, due_at }) => [work_id, due_at]);
}

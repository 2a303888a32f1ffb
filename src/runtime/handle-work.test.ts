import { afterAll, beforeEach, expect, it } from 'vitest';
import { openServiceHost } from '../../test/support/service-host.ts';
import { refuse } from '../protocol/errors.ts';
import { addWork, dropWork, guardLease, saveCheckpoint, wake } from '../store/queue.ts';
import { sql, type Write } from '../store/sql.ts';
import { changeOf } from './change.ts';
import { LeaseLost } from './effects/ledger.ts';
import { handleWork } from './handle-work.ts';
import type { WorkHandler } from './work-kind.ts';

const TABLES = [
  { id: 'test/1', statements: ['CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)'] },
];
const { host, store, close } = await openServiceHost({ tables: TABLES });
afterAll(close);

const lease = { workId: 'item', owner: 'host-1', epoch: 1 };
const claimed = { work_id: 'item', kind: 'test', tenant: 't', payload: '', epoch: 1, wakes: 0, crashes: 0, strikes: 0 };
let calls = 0;

beforeEach(async () => {
  calls = 0;
  await store.commit([
    dropWork('item'),
    addWork({ workId: 'item', kind: 'test', tenant: 't', dueAt: null, owner: 'host-1' }),
    { sql: 'DELETE FROM counters', params: [] },
    { sql: "INSERT INTO counters (name, value) VALUES ('a', 0)", params: [] },
  ]);
});

it('commits the change and the end of the item together, then announces', async () => {
  const told: string[] = [];
  const due = await handling(async () => {
    return { change: changeOf(undefined, [count(0, 1)], { announce: [() => told.push('told')] }), dueAgainAt: 7 };
  });
  expect(due).toBe(7);
  expect([await counted(), told, await items()]).toEqual([1, ['told'], [{ owner: null, due_at: 7, crashes: 0 }]]);
});

it('calls the handler again when another writer made its change outdated', async () => {
  await handling(async () => {
    const seen = await counted();
    if (calls === 1) await store.commit([count(seen, 10)]);
    return { change: changeOf(undefined, [count(seen, seen + 1)], { retryOn: ['counter'] }) };
  });
  expect([calls, await counted(), await items()]).toEqual([2, 11, []]);
});

it('gives up after too many conflicts, and does not take them for a lost lease', async () => {
  const outcome = await handling(async () => ({
    change: changeOf(undefined, [count(-1, 1)], { retryOn: ['counter'] }),
  })).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(Error);
  expect(outcome).not.toBeInstanceOf(LeaseLost);
  expect(calls).toBe(20);
  expect(await items()).toMatchObject([{ owner: 'host-1' }]);
});

it('says for what reason a change was refused', async () => {
  const refusals = { counter: refuse('conflict', 'Full.') };
  const outcome = handling(async () => ({ change: changeOf(undefined, [count(-1, 1)], { refusals }) }));
  await expect(outcome).rejects.toThrow('Full.');
});

it('calls the handler for each wake-up that came meanwhile, with what the item holds by then', async () => {
  const payloads: string[] = [];
  await handling(async ({ payload }) => {
    payloads.push(payload);
    if (calls <= 30) await store.commit([wake('item'), saveCheckpoint(lease, `after ${calls}`)]);
    return {};
  });
  expect([calls, payloads.at(-1), await items()]).toEqual([31, 'after 30', []]);
});

it('gives up when the change needs the lease of another item, which this host does not hold', async () => {
  const other = { ...lease, workId: 'another' };
  const outcome = handling(async () => ({ change: changeOf(undefined, [guardLease(other, true), count(0, 1)]) }));
  await expect(outcome).rejects.toThrow(LeaseLost);
  expect([calls, await counted()]).toEqual([1, 0]);
});

it('writes nothing once the lease is lost, whether the item was taken over or removed', async () => {
  const losing = (lose: Write) =>
    handling(async () => {
      await store.commit([lose]);
      return { change: changeOf(undefined, [count(0, 1)]) };
    });
  await expect(losing({ sql: 'UPDATE work SET epoch = 2', params: [] })).rejects.toThrow(LeaseLost);
  await expect(losing(dropWork('item'))).rejects.toThrow(LeaseLost);
  expect([calls, await counted()]).toEqual([2, 0]);
});

function handling(handle: WorkHandler): Promise<number | null> {
  const counting: WorkHandler = (item) => {
    calls++;
    return handle(item);
  };
  return handleWork(host.runtime, { handle: counting }, lease, claimed);
}

function items(): Promise<unknown[]> {
  return store.read(sql("SELECT owner, due_at, crashes FROM work WHERE work_id = 'item'"));
}

function count(before: number, after: number): Write {
  const statement = sql("UPDATE counters SET value = $1 WHERE name = 'a' AND value = $2", after, before);
  return { ...statement, expect: 1, expectation: 'counter' };
}

async function counted(): Promise<number> {
  const [row] = await store.read<{ value: number }>(sql("SELECT value FROM counters WHERE name = 'a'"));
  return row!.value;
}

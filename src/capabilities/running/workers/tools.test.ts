import { afterAll, expect, it } from 'vitest';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { ToolAwaited, type ToolCaller } from '../../../runtime/tools.ts';
import type { Write } from '../../../store/sql.ts';
import { cancelTask, putWorkerType, WORKER_TABLES } from './records.ts';
import { toolTaskId } from './rules.ts';
import { TaskQueue } from './task-queue.ts';
import { WorkerTools } from './tools.ts';

const tenant = 'alpha';
const effectId = 'effect-1';
const CANCEL = cancelTask(tenant, toolTaskId(effectId)).sql;
const reported: Write = {
  sql: `UPDATE worker_tasks SET state = 'done', outcome = '{"outputs":{"sum":3}}' WHERE task_id = $1`,
  params: [toolTaskId(effectId)],
};
const { host, store, clock, close } = await openServiceHost({
  tables: WORKER_TABLES,
  beforeCommit: async (unit) => {
    if (unit.some(({ sql }) => sql === CANCEL)) await store.commit([reported]);
  },
});
afterAll(close);

it('gives an agent what a worker reported just before the call would have been cancelled', async () => {
  const body = JSON.stringify({ description: 'Adds.', tool: 'pure', timeoutMs: 1_000 });
  const type = { tenant, type_id: 'acme.add', pool: 'default', body, updated_at: 0, seen_at: null };
  await store.commit([putWorkerType(type, undefined)]);
  const tool = await new WorkerTools(host.runtime, new TaskQueue(host.runtime)).find({ tenant }, 'openwop:acme.add');
  const { signal } = new AbortController();
  const by: ToolCaller = { tenant, effectId, signal, runId: 'run-1', nodeId: 'ask', agentId: 'a.first' };
  await expect(tool!.call({}, by)).rejects.toThrow(ToolAwaited);
  clock.advance(1_000);
  expect(await tool!.call({}, by)).toEqual({ sum: 3 });
});

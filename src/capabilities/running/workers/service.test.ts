import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { changeOf, perform } from '../../../runtime/change.ts';
import { RunService } from '../runs/service.ts';
import { findOpenTasks, findTask, findTaskStatus, insertTask, type TimedTaskRow, WORKER_TABLES } from './records.ts';
import { WorkerService } from './service.ts';

const host = await openCapabilityHost({ tables: WORKER_TABLES });
afterAll(() => host.close());
const { runtime } = host;
const { store } = runtime;
const caller = callerAs('ada');
const { tenant } = caller.subject;
const workers = new WorkerService(runtime, { entry: () => changeOf(undefined, []) });

it('shows open attempts and renews leases without reading what the attempts were called with', async () => {
  const work = workflow([node('a', 'core.delay', { config: { delayMs: 60_000 } })]);
  await registerShared(runtime, work);
  const request = { workflowId: work.id, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => new RunService(host, { models: [] }).create(caller, request));
  if (isRefusal(started)) throw new Error(started.message);
  const task = {
    task_id: 'task-1',
    tenant,
    workspace: null,
    run_id: started.runId,
    node_id: 'a',
    attempt: 0,
    visit: 0,
  };
  await store.commit([insertTask({ ...task, type_id: 'acme.add', pool: 'default', body: '{}', deadline: null })]);

  expect(await workers.openTasks(caller)).toMatchObject([{ taskId: 'task-1', typeId: 'acme.add', state: 'waiting' }]);
  expect(await workers.heartbeat(caller, 'task-1', { epoch: 7 })).toMatchObject({ refused: 'conflict' });

  const [whole] = await store.read<TimedTaskRow>(findTask({ tenant }, 'task-1'));
  const { body, outcome, ...status } = whole!;
  expect([body, outcome]).toEqual(['{}', null]);
  expect(await store.read(findTaskStatus({ tenant }, 'task-1'))).toEqual([status]);
  expect(await store.read(findOpenTasks({ tenant }, 10))).toEqual([status]);
});

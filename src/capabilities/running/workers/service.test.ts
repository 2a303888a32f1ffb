import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { EffectState } from '../../../protocol/running/workers.ts';
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

it('keeps what a worker reports only while it holds the lease, and an effect with a result is not claimed again', async () => {
  const [task] = await workers.claim(caller, { types: ['acme.add'] }, new AbortController().signal);
  const { taskId, epoch } = task!;
  const beat = (at: number) => perform(runtime, () => workers.heartbeat(caller, taskId, { epoch: at }));
  expect(await beat(epoch)).toMatchObject({ isCancelled: false });
  const [name, result] = ['charge', { paid: 3 }];
  expect(await workers.recordEffect(caller, taskId, { epoch, name, result })).toMatchObject({ refused: 'conflict' });
  const { idempotencyKey } = (await workers.claimEffect(caller, taskId, { epoch, name })) as EffectState;
  const done = { state: 'done', idempotencyKey, result };
  expect(await workers.recordEffect(caller, taskId, { epoch, name, result })).toEqual(done);
  expect(await workers.recordEffect(caller, taskId, { epoch, name, result: 'another' })).toEqual(done);
  expect(await workers.claimEffect(caller, taskId, { epoch, name })).toEqual(done);

  host.clock.advance(3_600_000);
  const over = { refused: 'conflict', message: expect.stringContaining('lease') };
  expect(await beat(epoch)).toMatchObject(over);
  expect(await workers.claimEffect(caller, taskId, { epoch, name })).toMatchObject(over);
});

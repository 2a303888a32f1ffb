import { Type } from 'typebox';
import {
  ClaimedTasks,
  ClaimTasksRequest,
  EffectClaim,
  EffectResult,
  EffectState,
  OPEN_TASKS_MAX,
  OpenTask,
  TaskCompletion,
  TaskFailure,
  TaskHeartbeat,
  TaskLease,
  TaskParams,
  TaskSuspension,
  WorkerType,
  WorkerTypeParams,
  WorkerTypeRequest,
} from '../../../protocol/running/workers.ts';
import { answer, NO_CONTENT, type Route, reply, route, transact } from '../../request.ts';
import type { Workers } from './door.ts';

/** What the handlers use. */
interface Services {
  readonly workers: Workers;
}
const operation = route<Services>();

const TYPES = '/v1/host/capstan/workers/types';
const TASKS = '/v1/host/capstan/workers/tasks';
const scope = 'workers:serve';

const listWorkerTypes = operation({
  operationId: 'listWorkerTypes',
  summary: 'Node types that workers serve, and when a worker last asked for attempts of each',
  method: 'GET',
  path: TYPES,
  scope,
  replies: { 200: Type.Object({ items: Type.Array(WorkerType) }) },
  handle: async ({ caller }, { workers }) => reply(200, { items: await workers.types(caller) }),
});

const putWorkerType = operation({
  operationId: 'putWorkerType',
  summary: 'Declare a node type whose attempts are made by workers, or replace its declaration',
  method: 'PUT',
  path: `${TYPES}/{typeId}`,
  scope,
  params: WorkerTypeParams,
  body: WorkerTypeRequest,
  replies: { 200: WorkerType },
  refusals: [400, 409],
  handle: ({ caller, params: { typeId }, body }, { workers }) =>
    transact(
      () => workers.declare(caller, typeId, body),
      (type) => reply(200, type),
    ),
});

const deleteWorkerType = operation({
  operationId: 'deleteWorkerType',
  summary: 'Remove the declaration of a node type; attempts that are queued stay',
  method: 'DELETE',
  path: `${TYPES}/{typeId}`,
  scope,
  params: WorkerTypeParams,
  replies: { 204: 'nothing' },
  refusals: [400, 404],
  handle: ({ caller, params: { typeId } }, { workers }) =>
    transact(
      () => workers.remove(caller, typeId),
      () => NO_CONTENT,
    ),
});

const listWorkerTasks = operation({
  operationId: 'listWorkerTasks',
  summary: `Attempts that wait for a worker or that one has, the oldest ${OPEN_TASKS_MAX}`,
  method: 'GET',
  path: TASKS,
  scope,
  replies: { 200: Type.Object({ items: Type.Array(OpenTask) }) },
  handle: async ({ caller }, { workers }) => reply(200, { items: await workers.openTasks(caller) }),
});

const claimWorkerTasks = operation({
  operationId: 'claimWorkerTasks',
  summary: 'Lease attempts at nodes; waits for one if there is none',
  method: 'POST',
  path: `${TASKS}:claim`,
  scope,
  body: ClaimTasksRequest,
  isUnrecorded: true,
  replies: { 200: ClaimedTasks },
  refusals: [400],
  handle: async ({ caller, body, signal }, { workers }) =>
    reply(200, { tasks: await workers.claim(caller, body, signal) }),
});

const heartbeatWorkerTask = operation({
  operationId: 'heartbeatWorkerTask',
  summary: 'Keep the lease of a task; the answer says whether the result is still wanted',
  method: 'POST',
  path: `${TASKS}/{taskId}:heartbeat`,
  scope,
  params: TaskParams,
  body: TaskHeartbeat,
  isUnrecorded: true,
  replies: { 200: TaskLease },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { taskId }, body }, { workers }) =>
    transact(
      () => workers.heartbeat(caller, taskId, body),
      (lease) => reply(200, lease),
      // A beat must not wait for a report that is on its way.
      { isAdditive: true },
    ),
});

const claimWorkerEffect = operation({
  operationId: 'claimWorkerEffect',
  summary: 'Claim an effect before performing it, or get its recorded result',
  method: 'POST',
  path: `${TASKS}/{taskId}/effects`,
  scope,
  params: TaskParams,
  body: EffectClaim,
  isUnrecorded: true,
  replies: { 200: EffectState },
  refusals: [400, 404, 409],
  handle: async ({ caller, params: { taskId }, body }, { workers }) =>
    answer(200, await workers.claimEffect(caller, taskId, body)),
});

const recordWorkerEffect = operation({
  operationId: 'recordWorkerEffect',
  summary: 'Record the result of an effect, so that it is never performed again',
  method: 'PUT',
  path: `${TASKS}/{taskId}/effects`,
  scope,
  params: TaskParams,
  body: EffectResult,
  isUnrecorded: true,
  replies: { 200: EffectState },
  refusals: [400, 404, 409],
  handle: async ({ caller, params: { taskId }, body }, { workers }) =>
    answer(200, await workers.recordEffect(caller, taskId, body)),
});

const completeWorkerTask = operation({
  operationId: 'completeWorkerTask',
  summary: 'Report the outputs of a node',
  method: 'POST',
  path: `${TASKS}/{taskId}:complete`,
  scope,
  params: TaskParams,
  body: TaskCompletion,
  replies: { 204: 'nothing' },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { taskId }, body }, { workers }) =>
    transact(
      () => workers.complete(caller, taskId, body),
      () => NO_CONTENT,
    ),
});

const failWorkerTask = operation({
  operationId: 'failWorkerTask',
  summary: 'Report that an attempt failed',
  method: 'POST',
  path: `${TASKS}/{taskId}:fail`,
  scope,
  params: TaskParams,
  body: TaskFailure,
  replies: { 204: 'nothing' },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { taskId }, body }, { workers }) =>
    transact(
      () => workers.fail(caller, taskId, body),
      () => NO_CONTENT,
    ),
});

const suspendWorkerTask = operation({
  operationId: 'suspendWorkerTask',
  summary: 'Give an attempt back that waits for a person, an event, a time or a child run',
  method: 'POST',
  path: `${TASKS}/{taskId}:suspend`,
  scope,
  params: TaskParams,
  body: TaskSuspension,
  replies: { 204: 'nothing' },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { taskId }, body }, { workers }) =>
    transact(
      () => workers.suspend(caller, taskId, body),
      () => NO_CONTENT,
    ),
});

/** The operations of workers. */
export const routes: readonly Route<Services>[] = [
  listWorkerTypes,
  putWorkerType,
  deleteWorkerType,
  listWorkerTasks,
  claimWorkerTasks,
  heartbeatWorkerTask,
  claimWorkerEffect,
  recordWorkerEffect,
  completeWorkerTask,
  failWorkerTask,
  suspendWorkerTask,
];

import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { ListQuery, Page, pageById, pageRequest } from '../../page.ts';
import { answer, type Reply, reply, route } from '../../request.ts';
import type { ScheduleService } from './service.ts';

const operation = route<{ readonly schedules: ScheduleService }>();

const SCHEDULES = '/v1/host/capstan/schedules';
const ScheduleParams = Closed({ scheduleId: Type.String({ minLength: 1, maxLength: 128 }) });

const listSchedules = operation({
  operationId: 'listSchedules',
  summary: 'Schedules, newest first',
  method: 'GET',
  path: SCHEDULES,
  scope: 'manifest:read',
  query: ListQuery({ workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })) }),
  replies: { 200: Page(Schedule) },
  refusals: [400],
  handle: async ({ caller, query }, { schedules }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const filter = { workflowId: query.workflowId, before: page.after };
    const found = await schedules.list(caller, filter, page.limit + 1);
    return reply(200, pageById(found, page));
  },
});

const createSchedule = operation({
  operationId: 'createSchedule',
  summary: 'Have a workflow run at a time, or again and again',
  method: 'POST',
  path: SCHEDULES,
  scope: 'schedules:write',
  body: ScheduleRequest,
  replies: { 201: Schedule },
  refusals: [400, 409],
  handle: async (request, { schedules }) =>
    answer(201, await schedules.create(request.caller, request.body, (done) => request.remember(reply(201, done)))),
});

const getSchedule = operation({
  operationId: 'getSchedule',
  summary: 'A schedule, with what came of it the last time',
  method: 'GET',
  path: `${SCHEDULES}/{scheduleId}`,
  scope: 'manifest:read',
  params: ScheduleParams,
  replies: { 200: Schedule },
  refusals: [404],
  handle: async ({ caller, params }, { schedules }) => answer(200, await schedules.find(caller, params.scheduleId)),
});

const replaceSchedule = operation({
  operationId: 'replaceSchedule',
  summary: 'Replace a schedule, or switch it on or off; runs that have begun go on',
  method: 'PUT',
  path: `${SCHEDULES}/{scheduleId}`,
  scope: 'schedules:write',
  params: ScheduleParams,
  body: ScheduleRequest,
  replies: { 200: Schedule },
  refusals: [400, 404, 409],
  handle: async (request, { schedules }) =>
    answer(
      200,
      await schedules.replace(request.caller, request.params.scheduleId, request.body, (done) =>
        request.remember(reply(200, done)),
      ),
    ),
});

const deleteSchedule = operation({
  operationId: 'deleteSchedule',
  summary: 'Remove a schedule; runs that have begun go on',
  method: 'DELETE',
  path: `${SCHEDULES}/{scheduleId}`,
  scope: 'schedules:write',
  params: ScheduleParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: async (request, { schedules }) => {
    const done: Reply = { status: 204 };
    const refusal = await schedules.remove(request.caller, request.params.scheduleId, () => request.remember(done));
    return refusal ?? done;
  },
});

export const routes = [listSchedules, createSchedule, getSchedule, replaceSchedule, deleteSchedule];

import { Type } from 'typebox';
import { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { answerPageById, ListQuery, Page } from '../../page.ts';
import { type Route, reply, route, transact } from '../../request.ts';
import { resourceOf, starterRoutes } from '../starter/routes.ts';
import type { Schedules } from './door.ts';
import type { ScheduleService } from './service.ts';

/** What the handlers use. */
interface Services {
  readonly starters: Schedules;
  readonly schedules: ScheduleService;
}
const operation = route<Services>();

const family = {
  noun: 'Schedule',
  path: '/v1/host/capstan/schedules',
  request: ScheduleRequest,
  document: Schedule,
  summaries: {
    create: 'Create a schedule that runs a workflow at a time, or repeatedly',
    get: 'A schedule, with the outcome of its last slot',
    delete: 'Remove a schedule; runs that have started continue',
  },
} as const;
const common = starterRoutes<ScheduleRequest, Schedule>(family);
const { idOf, ...one } = resourceOf(family);

const listSchedules = operation({
  operationId: 'listSchedules',
  summary: 'Schedules, newest first',
  method: 'GET',
  path: family.path,
  scope: 'manifest:read',
  query: ListQuery({ workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })) }),
  replies: { 200: Page(Schedule) },
  refusals: [400],
  handle: ({ caller, query }, { starters }) => {
    const { workflowId } = query;
    return answerPageById(query, (before, limit) => starters.list(caller, { workflowId, before }, limit));
  },
});

const replaceSchedule = operation({
  operationId: 'replaceSchedule',
  summary: 'Replace, enable or disable a schedule; runs that have started continue',
  method: 'PUT',
  ...one,
  scope: 'schedules:write',
  body: ScheduleRequest,
  replies: { 200: Schedule },
  refusals: [400, 404, 409],
  handle: ({ caller, params, body }, { schedules }) =>
    transact(
      () => schedules.replace(caller, idOf(params), body),
      (replaced) => reply(200, replaced),
    ),
});

/** The operations on schedules. */
export const routes: readonly Route<Services>[] = [
  listSchedules,
  common.create,
  common.get,
  replaceSchedule,
  common.delete,
];

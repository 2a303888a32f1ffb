import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { ListQuery, Page, pageById, pageRequest } from '../../page.ts';
import { type Route, reply, route, transact } from '../../request.ts';
import { resourceOf, starterRoutes } from '../starter/routes.ts';
import type { Schedules } from './door.ts';

/** What the handlers use. */
interface Services {
  readonly starters: Schedules;
}
const operation = route<Services>();

const family = {
  noun: 'Schedule',
  path: '/v1/host/capstan/schedules',
  request: ScheduleRequest,
  document: Schedule,
  summaries: {
    create: 'Have a workflow run at a time, or again and again',
    get: 'A schedule, with what came of it the last time',
    delete: 'Remove a schedule; runs that have begun go on',
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
  handle: async ({ caller, query }, { starters }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const filter = { workflowId: query.workflowId, before: page.after };
    return reply(200, pageById(await starters.list(caller, filter, page.limit + 1), page));
  },
});

const replaceSchedule = operation({
  operationId: 'replaceSchedule',
  summary: 'Replace a schedule, or switch it on or off; runs that have begun go on',
  method: 'PUT',
  ...one,
  scope: 'schedules:write',
  body: ScheduleRequest,
  replies: { 200: Schedule },
  refusals: [400, 404, 409],
  handle: ({ caller, params, body }, { starters }) =>
    transact(
      () => starters.replace(caller, idOf(params), body),
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

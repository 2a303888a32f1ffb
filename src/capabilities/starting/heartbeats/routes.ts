import { isRefusal } from '../../../protocol/errors.ts';
import { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { ListQuery, Page, pageById, pageOf, pageRequest } from '../../page.ts';
import { type Route, reply, route } from '../../request.ts';
import { resourceOf, starterRoutes, switchRoutes } from '../starter/routes.ts';
import type { Heartbeats } from './door.ts';

/** What the handlers use. */
interface Services {
  readonly starters: Heartbeats;
}
const operation = route<Services>();

const family = {
  noun: 'Heartbeat',
  path: '/v1/host/capstan/heartbeats',
  request: HeartbeatRequest,
  document: Heartbeat,
  summaries: {
    create: 'Have something looked at again and again, and a workflow run when it changes',
    get: 'A heartbeat, with what it saw last',
    delete: 'Remove a heartbeat; runs that have begun go on',
  },
} as const;
const common = starterRoutes<HeartbeatRequest, Heartbeat>(family);
const { idOf, params, path } = resourceOf(family);

const listHeartbeats = operation({
  operationId: 'listHeartbeats',
  summary: 'Heartbeats, newest first',
  method: 'GET',
  path: family.path,
  scope: 'manifest:read',
  query: ListQuery({}),
  replies: { 200: Page(Heartbeat) },
  refusals: [400],
  handle: async ({ caller, query }, { starters }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    return reply(200, pageById(await starters.list(caller, { before: page.after }, page.limit + 1), page));
  },
});

const listHeartbeatEvents = operation({
  operationId: 'listHeartbeatEvents',
  summary: 'What a heartbeat said last, newest first: every tick, and every change',
  method: 'GET',
  path: `${path}/events`,
  scope: 'manifest:read',
  params,
  query: ListQuery({}),
  replies: { 200: Page(HeartbeatEvent) },
  refusals: [400, 404],
  handle: async ({ caller, params: named, query }, { starters }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const before = Number(page.after ?? Number.MAX_SAFE_INTEGER);
    const found = await starters.events(caller, idOf(named), before, page.limit + 1);
    if (isRefusal(found)) return found;
    return reply(
      200,
      pageOf(
        found,
        page,
        (event) => event,
        ({ sequence }) => String(sequence),
      ),
    );
  },
});

/** The operations on heartbeats. */
export const routes: readonly Route<Services>[] = [
  listHeartbeats,
  common.create,
  common.get,
  listHeartbeatEvents,
  ...switchRoutes(family, {
    pause: 'Keep a heartbeat without looking',
    resume: 'Have a heartbeat look again, from now on',
  }),
  common.delete,
];

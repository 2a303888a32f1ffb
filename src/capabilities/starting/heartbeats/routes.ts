import { isRefusal } from '../../../protocol/errors.ts';
import { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { answerPageById, ListQuery, numberIn, Page, pageFrom, pageOf } from '../../page.ts';
import { type Route, reply, route } from '../../request.ts';
import { resourceOf, starterRoutes, switchRoutes } from '../starter/routes.ts';
import type { Heartbeats } from './door.ts';
import type { HeartbeatService } from './service.ts';

/** What the handlers use. */
interface Services {
  readonly starters: Heartbeats;
  readonly heartbeats: HeartbeatService;
}
const operation = route<Services>();

const family = {
  noun: 'Heartbeat',
  path: '/v1/host/capstan/heartbeats',
  request: HeartbeatRequest,
  document: Heartbeat,
  summaries: {
    create: 'Create a heartbeat that observes something at an interval and runs a workflow when it changes',
    get: 'A heartbeat, with its last observed state',
    delete: 'Remove a heartbeat; runs that have started continue',
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
  handle: ({ caller, query }, { starters }) =>
    answerPageById(query, (before, limit) => starters.list(caller, { before }, limit)),
});

const listHeartbeatEvents = operation({
  operationId: 'listHeartbeatEvents',
  summary: 'The latest events of a heartbeat, newest first: every tick and every change',
  method: 'GET',
  path: `${path}/events`,
  scope: 'manifest:read',
  params,
  query: ListQuery({}),
  replies: { 200: Page(HeartbeatEvent) },
  refusals: [400, 404],
  handle: async ({ caller, params: named, query }, { heartbeats }) => {
    const page = pageFrom(query, numberIn);
    if (isRefusal(page)) return page;
    const before = page.after ?? Number.MAX_SAFE_INTEGER;
    const found = await heartbeats.events(caller, idOf(named), before, page.limit + 1);
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
    pause: 'Disable a heartbeat',
    resume: 'Enable a heartbeat, from now on',
  }),
  common.delete,
];

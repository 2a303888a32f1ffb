import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { ListQuery, Page, pageById, pageOf, pageRequest } from '../../page.ts';
import { answer, type Reply, reply, route } from '../../request.ts';
import type { HeartbeatService } from './service.ts';

const operation = route<{ readonly heartbeat: HeartbeatService }>();

const HEARTBEATS = '/v1/host/capstan/heartbeats';
const HeartbeatParams = Closed({ heartbeatId: Type.String({ minLength: 1, maxLength: 128 }) });

const listHeartbeats = operation({
  operationId: 'listHeartbeats',
  summary: 'Heartbeats, newest first',
  method: 'GET',
  path: HEARTBEATS,
  scope: 'manifest:read',
  query: ListQuery({}),
  replies: { 200: Page(Heartbeat) },
  refusals: [400],
  handle: async ({ caller, query }, { heartbeat }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const found = await heartbeat.list(caller, page.after, page.limit + 1);
    return reply(200, pageById(found, page));
  },
});

const createHeartbeat = operation({
  operationId: 'createHeartbeat',
  summary: 'Have something looked at again and again, and a workflow run when it changes',
  method: 'POST',
  path: HEARTBEATS,
  scope: 'schedules:write',
  body: HeartbeatRequest,
  replies: { 201: Heartbeat },
  refusals: [400, 409],
  handle: async (request, { heartbeat }) =>
    answer(201, await heartbeat.create(request.caller, request.body, (done) => request.remember(reply(201, done)))),
});

const getHeartbeat = operation({
  operationId: 'getHeartbeat',
  summary: 'A heartbeat, with what it saw last',
  method: 'GET',
  path: `${HEARTBEATS}/{heartbeatId}`,
  scope: 'manifest:read',
  params: HeartbeatParams,
  replies: { 200: Heartbeat },
  refusals: [404],
  handle: async ({ caller, params }, { heartbeat }) => answer(200, await heartbeat.find(caller, params.heartbeatId)),
});

const listHeartbeatEvents = operation({
  operationId: 'listHeartbeatEvents',
  summary: 'What a heartbeat said last, newest first: every tick, and every change',
  method: 'GET',
  path: `${HEARTBEATS}/{heartbeatId}/events`,
  scope: 'manifest:read',
  params: HeartbeatParams,
  query: ListQuery({}),
  replies: { 200: Page(HeartbeatEvent) },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { heartbeat }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const before = Number(page.after ?? Number.MAX_SAFE_INTEGER);
    const found = await heartbeat.events(caller, params.heartbeatId, before, page.limit + 1);
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

function turning(verb: 'pause' | 'resume', summary: string) {
  return operation({
    operationId: `${verb}Heartbeat`,
    summary,
    method: 'POST',
    path: `${HEARTBEATS}/{heartbeatId}:${verb}`,
    scope: 'schedules:write',
    params: HeartbeatParams,
    replies: { 200: Heartbeat },
    refusals: [404, 409],
    handle: async (request, { heartbeat }) => {
      const remember = (done: Heartbeat) => request.remember(reply(200, done));
      return answer(200, await heartbeat.turn(request.caller, request.params.heartbeatId, verb === 'resume', remember));
    },
  });
}

const deleteHeartbeat = operation({
  operationId: 'deleteHeartbeat',
  summary: 'Remove a heartbeat; runs that have begun go on',
  method: 'DELETE',
  path: `${HEARTBEATS}/{heartbeatId}`,
  scope: 'schedules:write',
  params: HeartbeatParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: async (request, { heartbeat }) => {
    const done: Reply = { status: 204 };
    const refusal = await heartbeat.remove(request.caller, request.params.heartbeatId, () => request.remember(done));
    return refusal ?? done;
  },
});

export const routes = [
  listHeartbeats,
  createHeartbeat,
  getHeartbeat,
  listHeartbeatEvents,
  turning('pause', 'Keep a heartbeat without looking'),
  turning('resume', 'Have a heartbeat look again, from now on'),
  deleteHeartbeat,
];

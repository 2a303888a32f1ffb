import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { TRIGGER_OUTCOMES } from '../../../protocol/format/choices.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import {
  AnsweredByHook,
  RotatedTrigger,
  RotateTriggerRequest,
  StartedByHook,
  Trigger,
  TriggerDelivery,
} from '../../../protocol/starting/triggers.ts';
import { answerPageById, ListQuery, Page, pageById, pageRequest } from '../../page.ts';
import { answer, type Route, reply, route, transact } from '../../request.ts';
import type { DeliveryLog } from './deliveries.ts';
import { HOOKS } from './document.ts';
import type { Triggers } from './door.ts';
import type { HookReceiver } from './receiving.ts';

/** What the handlers use. */
interface Services {
  readonly triggers: Triggers;
  readonly hooks: HookReceiver;
  readonly log: DeliveryLog;
}
const operation = route<Services>();

const TRIGGERS = '/v1/host/capstan/triggers';
const params = Closed({ triggerId: Type.String({ minLength: 1, maxLength: 128 }) });

const listTriggers = operation({
  operationId: 'listTriggers',
  summary: 'Triggers that others set off, with the URLs of webhooks, newest first',
  method: 'GET',
  path: TRIGGERS,
  scope: 'manifest:read',
  query: ListQuery({ workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })) }),
  replies: { 200: Page(Trigger) },
  refusals: [400],
  handle: ({ caller, query, origin }, { triggers }) => {
    const { workflowId } = query;
    return answerPageById(query, (before, limit) => triggers.list(caller, { workflowId, before }, limit, origin));
  },
});

const getTrigger = operation({
  operationId: 'getTrigger',
  summary: 'A trigger that others set off',
  method: 'GET',
  path: `${TRIGGERS}/{triggerId}`,
  scope: 'manifest:read',
  params,
  replies: { 200: Trigger },
  refusals: [404],
  handle: async ({ caller, params: { triggerId }, origin }, { triggers }) =>
    answer(200, await triggers.find(caller, triggerId, origin)),
});

const rotateTrigger = operation({
  operationId: 'rotateTrigger',
  summary: 'Set or replace the signing secret of a webhook trigger, or replace its URL',
  method: 'POST',
  path: `${TRIGGERS}/{triggerId}:rotate`,
  scope: 'schedules:write',
  params,
  body: RotateTriggerRequest,
  bodyOptional: true,
  // The reply may be a credential, which is not stored; repeating the request makes another one.
  isUnrecorded: true,
  replies: { 200: RotatedTrigger },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { triggerId }, body, origin }, { triggers }) =>
    transact(
      () => triggers.rotate(caller, triggerId, body ?? {}, origin),
      (rotated) => reply(200, rotated),
    ),
});

const listTriggerDeliveries = operation({
  operationId: 'listTriggerDeliveries',
  summary: 'What came of the requests to a webhook trigger, newest first',
  method: 'GET',
  path: `${TRIGGERS}/{triggerId}/deliveries`,
  scope: 'runs:read',
  params,
  query: ListQuery({ outcome: Type.Optional(OneOf(TRIGGER_OUTCOMES)) }),
  replies: { 200: Page(TriggerDelivery) },
  refusals: [400, 404],
  handle: async ({ caller, params: { triggerId }, query }, { log }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const filter = { outcome: query.outcome, before: page.after };
    const found = await log.list(caller, triggerId, filter, page.limit + 1);
    return isRefusal(found) ? found : reply(200, pageById(found, page));
  },
});

const receiveHook = operation({
  operationId: 'receiveHook',
  summary: 'Start a run by a webhook trigger: the URL and, if it asks for one, the signature are the credential',
  method: 'POST',
  path: `${HOOKS}/{token}`,
  scope: 'public',
  params: Closed({ token: Type.String({ minLength: 1 }) }),
  body: Type.Unknown(),
  isRawBody: true,
  isUnrecorded: true,
  replies: { 200: AnsweredByHook, 202: StartedByHook },
  refusals: [400, 404, 409, 422, 429],
  handle: ({ params: { token: path }, body, header, headers, query, origin, signal }, { hooks }) =>
    hooks.receive({
      path,
      bytes: body instanceof Uint8Array ? body : new Uint8Array(),
      header,
      headers,
      query,
      origin,
      signal,
    }),
});

/** The operations on triggers. */
export const routes: readonly Route<Services>[] = [
  listTriggers,
  getTrigger,
  rotateTrigger,
  listTriggerDeliveries,
  receiveHook,
];

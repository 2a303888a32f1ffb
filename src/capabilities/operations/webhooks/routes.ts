import { Type } from 'typebox';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import {
  DELIVERY_STATES,
  IssuedWebhook,
  ScopeName,
  WebhookDelivery,
  WebhookRegistration,
  WebhookSubscription,
} from '../../../protocol/operations/webhooks.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { type Reply, reply, route } from '../../request.ts';
import type { DeliveryPlace } from './records.ts';
import type { Delivery, Issued, Webhook, WebhookService } from './service.ts';
import { SIGNATURE_ALGORITHM } from './signing.ts';

const operation = route<{ readonly webhooks: WebhookService }>();

const Optional = Type.Optional;
const WEBHOOKS = '/v1/host/capstan/webhooks';

const WebhookId = Type.String({ minLength: 1, maxLength: 128 });
const registerWebhook = operation({
  operationId: 'registerWebhook',
  summary: 'Have events of runs delivered to a URL, signed',
  method: 'POST',
  path: '/v1/webhooks',
  scope: 'webhooks:manage',
  body: WebhookRegistration,
  replies: { 201: IssuedWebhook },
  refusals: [400, 403, 409],
  handle: async (request, { webhooks }) => {
    const { url, events, tags, tenantId, signatureAlgorithms } = request.body;
    if (!URL.canParse(url)) return refuse('validation_error', 'url is not a URL.', { field: 'url' });
    if (signatureAlgorithms && !signatureAlgorithms.includes(SIGNATURE_ALGORITHM)) {
      const message = `Deliveries are signed with ${SIGNATURE_ALGORITHM}, which the receiver must be able to verify.`;
      return refuse('validation_error', message, { field: 'signatureAlgorithms' });
    }
    const shown = (issued: Issued): Reply =>
      reply(201, signatureAlgorithms ? { ...issued, signatureAlgorithms: [SIGNATURE_ALGORITHM] } : issued);
    const outcome = await webhooks.register(request.caller, { url, events, tags, scopeName: tenantId }, (issued) =>
      request.remember(shown(issued)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

const unregisterWebhook = operation({
  operationId: 'unregisterWebhook',
  summary: 'Stop deliveries to a webhook and forget it',
  method: 'DELETE',
  path: '/v1/webhooks/{webhookId}',
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId }),
  query: Closed({ tenantId: Optional(ScopeName) }),
  replies: { 204: 'nothing' },
  refusals: [403, 404],
  handle: async (request, { webhooks }) => {
    const { webhookId } = request.params;
    const done: Reply = { status: 204 };
    const refusal = await webhooks.unregister(request.caller, webhookId, request.query.tenantId, () =>
      request.remember(done),
    );
    return refusal ?? done;
  },
});

const listWebhooks = operation({
  operationId: 'listWebhooks',
  summary: 'Webhooks, without their secrets, newest first',
  method: 'GET',
  path: WEBHOOKS,
  scope: 'webhooks:manage',
  query: ListQuery({}),
  replies: { 200: Page(WebhookSubscription) },
  refusals: [400],
  handle: async ({ caller, query }, { webhooks }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const found = await webhooks.list(caller, page.after, page.limit + 1);
    return reply(
      200,
      pageOf(found, page, shownWebhook, ({ webhookId }) => webhookId),
    );
  },
});

const rotateWebhook = operation({
  operationId: 'rotateWebhookSecret',
  summary: 'Sign deliveries with a new secret from now on; it is shown once',
  method: 'POST',
  path: `${WEBHOOKS}/{webhookId}:rotate`,
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId }),
  replies: { 200: IssuedWebhook },
  refusals: [404, 409],
  handle: async (request, { webhooks }) => {
    const outcome = await webhooks.rotate(request.caller, request.params.webhookId, (issued) =>
      request.remember(reply(200, issued)),
    );
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

const listDeliveries = operation({
  operationId: 'listWebhookDeliveries',
  summary: 'What came of deliveries to a webhook, newest first; `state=dead` are the dead letters',
  method: 'GET',
  path: `${WEBHOOKS}/{webhookId}/deliveries`,
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId }),
  query: ListQuery({ state: Optional(OneOf(DELIVERY_STATES)) }),
  replies: { 200: Page(WebhookDelivery) },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { webhooks }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const before = page.after === undefined ? undefined : placeOf(page.after);
    if (before === null)
      return refuse('validation_error', 'cursor is not one that this host gave out.', { field: 'cursor' });
    const { state } = query;
    const filter = { ...(state ? { state } : {}), before, limit: page.limit + 1 };
    const found = await webhooks.deliveries(caller, params.webhookId, filter);
    if (isRefusal(found)) return found;
    return reply(
      200,
      pageOf(found, page, shownDelivery, ({ createdAt, deliveryId }) => `${createdAt}.${deliveryId}`),
    );
  },
});

/** Null when the text names no place. */
function placeOf(text: string): DeliveryPlace | null {
  const [, at, id] = /^(\d{1,16})\.([A-Za-z0-9-]+)$/.exec(text) ?? [];
  return at === undefined || id === undefined ? null : { at: Number(at), id };
}

const redeliver = operation({
  operationId: 'redeliverWebhookDelivery',
  summary: 'Send an event to a webhook again, under the same delivery id',
  method: 'POST',
  path: `${WEBHOOKS}/{webhookId}/deliveries/{deliveryId}:redeliver`,
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId, deliveryId: Type.String({ minLength: 1, maxLength: 256 }) }),
  replies: { 202: WebhookDelivery },
  refusals: [404, 409],
  handle: async (request, { webhooks }) => {
    const { webhookId, deliveryId } = request.params;
    const shown = (delivery: Delivery): Reply => reply(202, shownDelivery(delivery));
    const outcome = await webhooks.redeliver(request.caller, webhookId, deliveryId, (delivery) =>
      request.remember(shown(delivery)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

function shownWebhook({ createdAt, rotatedAt, ...rest }: Webhook): object {
  return { ...rest, ...times({ createdAt, rotatedAt }) };
}

function shownDelivery({ createdAt, lastAttemptAt, nextAttemptAt, ...rest }: Delivery): object {
  return { ...rest, ...times({ createdAt, lastAttemptAt, nextAttemptAt }) };
}

function times(known: Record<string, number | undefined>): object {
  const given = Object.entries(known).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(given.map(([name, at]) => [name, new Date(at).toISOString()]));
}

export const routes = [registerWebhook, unregisterWebhook, listWebhooks, rotateWebhook, listDeliveries, redeliver];

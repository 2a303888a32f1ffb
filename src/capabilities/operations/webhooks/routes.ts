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
import { ListQuery, numberAndIdIn, Page, pageFrom, pageOf, pageRequest } from '../../page.ts';
import { NO_CONTENT, reply, route, transact } from '../../request.ts';
import { deliveryDocument } from './document.ts';
import type { WebhookService } from './service.ts';
import { SIGNATURE_ALGORITHM } from './signing.ts';

const operation = route<{ readonly webhooks: WebhookService }>();

const Optional = Type.Optional;
const WEBHOOKS = '/v1/host/capstan/webhooks';

const WebhookId = Type.String({ minLength: 1, maxLength: 128 });
const registerWebhook = operation({
  operationId: 'registerWebhook',
  summary: 'Register a webhook: events of runs are signed and delivered to its URL',
  method: 'POST',
  path: '/v1/webhooks',
  scope: 'webhooks:manage',
  body: WebhookRegistration,
  replies: { 201: IssuedWebhook },
  refusals: [400, 403, 409],
  handle: ({ caller, body }, { webhooks }) => {
    const { url, events, tags, tenantId, signatureAlgorithms } = body;
    if (!URL.canParse(url)) return refuse('validation_error', 'url must be an absolute URL.', { field: 'url' });
    if (signatureAlgorithms && !signatureAlgorithms.includes(SIGNATURE_ALGORITHM)) {
      const message = `Deliveries are signed with ${SIGNATURE_ALGORITHM}, which the receiver must be able to verify.`;
      return refuse('validation_error', message, { field: 'signatureAlgorithms' });
    }
    const chosen = signatureAlgorithms ? { signatureAlgorithms: [SIGNATURE_ALGORITHM] } : {};
    return transact(
      () => webhooks.register(caller, { url, events, tags, scopeName: tenantId }),
      (issued) => reply(201, { ...issued, ...chosen }),
    );
  },
});

const unregisterWebhook = operation({
  operationId: 'unregisterWebhook',
  summary: 'Delete a webhook and stop its deliveries',
  method: 'DELETE',
  path: '/v1/webhooks/{webhookId}',
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId }),
  query: Closed({ tenantId: Optional(ScopeName) }),
  replies: { 204: 'nothing' },
  refusals: [403, 404],
  handle: ({ caller, params: { webhookId }, query: { tenantId } }, { webhooks }) =>
    transact(
      () => webhooks.unregister(caller, webhookId, tenantId),
      () => NO_CONTENT,
    ),
});

const listWebhooks = operation({
  operationId: 'listWebhooks',
  summary: 'List webhooks, without their secrets, newest first',
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
      pageOf(
        found,
        page,
        (webhook) => webhook,
        ({ webhookId }) => webhookId,
      ),
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
  handle: ({ caller, params: { webhookId } }, { webhooks }) =>
    transact(
      () => webhooks.rotate(caller, webhookId),
      (issued) => reply(200, issued),
    ),
});

const listDeliveries = operation({
  operationId: 'listWebhookDeliveries',
  summary: 'List the deliveries to a webhook, newest first; `state=dead` selects the dead letters',
  method: 'GET',
  path: `${WEBHOOKS}/{webhookId}/deliveries`,
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId }),
  query: ListQuery({ state: Optional(OneOf(DELIVERY_STATES)) }),
  replies: { 200: Page(WebhookDelivery) },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { webhooks }) => {
    const page = pageFrom(query, numberAndIdIn);
    if (isRefusal(page)) return page;
    const before = page.after && { at: page.after.number, id: page.after.id };
    const filter = { state: query.state, before, limit: page.limit + 1 };
    const found = await webhooks.deliveries(caller, params.webhookId, filter);
    if (isRefusal(found)) return found;
    return reply(
      200,
      pageOf(found, page, deliveryDocument, ({ created_at, delivery_id }) => `${created_at}.${delivery_id}`),
    );
  },
});

const redeliver = operation({
  operationId: 'redeliverWebhookDelivery',
  summary: 'Send an event to a webhook again, under the same delivery id',
  method: 'POST',
  path: `${WEBHOOKS}/{webhookId}/deliveries/{deliveryId}:redeliver`,
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId, deliveryId: Type.String({ minLength: 1, maxLength: 256 }) }),
  replies: { 202: WebhookDelivery },
  refusals: [404, 409],
  handle: ({ caller, params: { webhookId, deliveryId } }, { webhooks }) =>
    transact(
      () => webhooks.redeliver(caller, webhookId, deliveryId),
      (delivery) => reply(202, deliveryDocument(delivery)),
    ),
});

/** The operations on webhooks. */
export const routes = [registerWebhook, unregisterWebhook, listWebhooks, rotateWebhook, listDeliveries, redeliver];

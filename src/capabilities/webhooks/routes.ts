import { Type } from 'typebox';
import { isRefusal, refuse } from '../../protocol/errors.ts';
import { Closed, NonEmpty, OneOf, Timestamp } from '../../protocol/schema.ts';
import { type Reply, reply, route } from '../capability.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../page.ts';
import { DELIVERY_STATES, type DeliveryPlace } from './records.ts';
import type { Delivery, Issued, Webhook, WebhookService } from './service.ts';
import { SIGNATURE_ALGORITHM } from './signing.ts';

const operation = route<{ readonly webhooks: WebhookService }>();

const Optional = Type.Optional;
const WEBHOOKS = '/v1/host/capstan/webhooks';
const EVENTS_MAX = 100;
const TAGS_MAX = 100;

const WebhookId = Type.String({ minLength: 1, maxLength: 128 });
const ScopeName = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'The workspace, or the tenant of a caller who has none; the own one when left out',
});

/** Members beyond these are passed over: a secret that the caller chose, for one, is not used. */
const Registration = Type.Object({
  url: Type.String({ minLength: 1, maxLength: 2_048, description: 'https, to a public address' }),
  events: Type.Array(Type.String({ pattern: '^[a-z][a-z0-9_-]*(\\.[A-Za-z0-9_-]+)+$', maxLength: 128 }), {
    minItems: 1,
    maxItems: EVENTS_MAX,
    description: 'Types of events to deliver',
  }),
  tenantId: Optional(ScopeName),
  tags: Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      maxItems: TAGS_MAX,
      description: 'Only runs that have one of these; all runs when empty',
    }),
  ),
  signatureAlgorithms: Optional(Type.Array(NonEmpty, { description: 'What the receiver can verify' })),
});

const IssuedWebhook = Type.Object(
  {
    webhookId: NonEmpty,
    secret: Type.String({ description: 'Signs deliveries. Shown in this answer and never again' }),
    secretFingerprint: Type.String({ description: 'The first 8 hex digits of its SHA-256' }),
    signatureAlgorithms: Optional(Type.Array(NonEmpty)),
  },
  { $id: 'IssuedWebhook' },
);

const registerWebhook = operation({
  operationId: 'registerWebhook',
  summary: 'Have events of runs delivered to a URL, signed',
  method: 'POST',
  path: '/v1/webhooks',
  scope: 'webhooks:manage',
  body: Registration,
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

const Subscription = Type.Object(
  {
    webhookId: NonEmpty,
    tenantId: ScopeName,
    url: Optional(Type.String({ description: 'Without what looks like a credential in it' })),
    events: Type.Array(NonEmpty),
    tags: Type.Array(Type.String()),
    secretFingerprint: Type.String(),
    createdBy: NonEmpty,
    createdAt: Timestamp,
    rotatedAt: Optional(Timestamp),
  },
  { $id: 'WebhookSubscription' },
);

const listWebhooks = operation({
  operationId: 'listWebhooks',
  summary: 'Webhooks, without their secrets, newest first',
  method: 'GET',
  path: WEBHOOKS,
  scope: 'webhooks:manage',
  query: ListQuery({}),
  replies: { 200: Page(Subscription) },
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

const DeliveryDoc = Type.Object(
  {
    deliveryId: NonEmpty,
    webhookId: NonEmpty,
    runId: NonEmpty,
    eventId: NonEmpty,
    eventType: NonEmpty,
    sequence: Type.Integer({ minimum: 0 }),
    state: OneOf(DELIVERY_STATES, { description: 'dead: given up, and waiting to be sent again by hand' }),
    attempts: Type.Integer({ minimum: 1 }),
    createdAt: Timestamp,
    lastAttemptAt: Timestamp,
    nextAttemptAt: Optional(Timestamp),
    lastStatus: Optional(Type.Integer({ description: 'What the receiver answered last' })),
    lastError: Optional(Type.String()),
  },
  { $id: 'WebhookDelivery' },
);

const listDeliveries = operation({
  operationId: 'listWebhookDeliveries',
  summary: 'What came of deliveries to a webhook, newest first; `state=dead` are the dead letters',
  method: 'GET',
  path: `${WEBHOOKS}/{webhookId}/deliveries`,
  scope: 'webhooks:manage',
  params: Closed({ webhookId: WebhookId }),
  query: ListQuery({ state: Optional(OneOf(DELIVERY_STATES)) }),
  replies: { 200: Page(DeliveryDoc) },
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
  replies: { 202: DeliveryDoc },
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

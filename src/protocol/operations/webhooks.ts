import { type Static, Type } from 'typebox';
import { DELIVERY_STATES } from '../format/choices.ts';
import { NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

export { DELIVERY_STATES, type DeliveryState } from '../format/choices.ts';

const Optional = Type.Optional;
const EVENTS_MAX = 100;
const TAGS_MAX = 100;

export const ScopeName = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'The workspace, or the tenant of a caller who has none; the own one when left out',
});

/** Members beyond these are passed over: a secret that the caller chose, for one, is not used. */
export const WebhookRegistration = Type.Object({
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
export type WebhookRegistration = Static<typeof WebhookRegistration>;

export const IssuedWebhook = Type.Object(
  {
    webhookId: NonEmpty,
    secret: Type.String({ description: 'Signs deliveries. Shown in this answer and never again' }),
    secretFingerprint: Type.String({ description: 'The first 8 hex digits of its SHA-256' }),
    signatureAlgorithms: Optional(Type.Array(NonEmpty)),
  },
  { $id: 'IssuedWebhook' },
);
export type IssuedWebhook = Static<typeof IssuedWebhook>;

export const WebhookSubscription = Type.Object(
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
export type WebhookSubscription = Static<typeof WebhookSubscription>;

export const WebhookDelivery = Type.Object(
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
export type WebhookDelivery = Static<typeof WebhookDelivery>;

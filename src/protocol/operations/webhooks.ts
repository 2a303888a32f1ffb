import { type Static, Type } from 'typebox';
import { DELIVERY_STATES } from '../format/choices.ts';
import { NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { EVENTS } from '../running/events.ts';

export { DELIVERY_STATES, type DeliveryState } from '../format/choices.ts';

const Optional = Type.Optional;
const EVENTS_MAX = 100;
const TAGS_MAX = 100;

/** The workspace or tenant that a subscription covers. */
export const ScopeName = Type.String({
  minLength: 1,
  maxLength: 128,
  description: "Workspace, or the tenant for callers without a workspace; defaults to the caller's own",
});

/** Subscribes to events. Unknown members are ignored, including a secret chosen by the caller. */
export const WebhookRegistration = Type.Object({
  url: Type.String({ minLength: 1, maxLength: 2_048, description: 'https URL with a public address' }),
  events: Type.Array(OneOf(Object.keys(EVENTS)), {
    minItems: 1,
    maxItems: EVENTS_MAX,
    description: 'Event types to deliver',
  }),
  tenantId: Optional(ScopeName),
  tags: Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      maxItems: TAGS_MAX,
      description: 'Deliver only events of runs with one of these tags; empty means all runs',
    }),
  ),
  signatureAlgorithms: Optional(
    Type.Array(NonEmpty, { description: 'Signature algorithms that the receiver supports' }),
  ),
});
/** A well-formed registration; the URL is checked when it is registered and at every delivery. */
export type WebhookRegistration = Static<typeof WebhookRegistration>;

/** The response to a registration or rotation, which contains the signing secret. */
export const IssuedWebhook = Type.Object(
  {
    webhookId: NonEmpty,
    secret: Type.String({ description: 'Signing secret; returned only in this response' }),
    secretFingerprint: Type.String({ description: 'First 8 hex digits of the SHA-256 of the secret' }),
    signatureAlgorithms: Optional(Type.Array(NonEmpty)),
  },
  { $id: 'IssuedWebhook' },
);
/** A subscription with its secret, which cannot be read again. */
export type IssuedWebhook = Static<typeof IssuedWebhook>;

/** A subscription as listed. */
export const WebhookSubscription = Type.Object(
  {
    webhookId: NonEmpty,
    tenantId: ScopeName,
    url: Optional(Type.String({ description: 'Redacted: parts that look like credentials are removed' })),
    events: Type.Array(NonEmpty),
    tags: Type.Array(Type.String()),
    secretFingerprint: Type.String(),
    createdBy: NonEmpty,
    createdAt: Timestamp,
    rotatedAt: Optional(Timestamp),
  },
  { $id: 'WebhookSubscription' },
);
/** A subscription without its secret; `secretFingerprint` tells which secret is in use. */
export type WebhookSubscription = Static<typeof WebhookSubscription>;

/** The delivery of one event to one subscription. */
export const WebhookDelivery = Type.Object(
  {
    deliveryId: NonEmpty,
    webhookId: NonEmpty,
    runId: NonEmpty,
    eventId: NonEmpty,
    eventType: NonEmpty,
    sequence: Type.Integer({ minimum: 0 }),
    state: OneOf(DELIVERY_STATES, { description: 'dead: all attempts failed; redeliver it manually' }),
    attempts: Type.Integer({ minimum: 1 }),
    createdAt: Timestamp,
    lastAttemptAt: Timestamp,
    nextAttemptAt: Optional(Timestamp),
    lastStatus: Optional(Type.Integer({ description: 'HTTP status of the last response' })),
    lastError: Optional(Type.String()),
  },
  { $id: 'WebhookDelivery' },
);
/** A delivery with its attempts so far; it has `nextAttemptAt` while another one is planned. */
export type WebhookDelivery = Static<typeof WebhookDelivery>;

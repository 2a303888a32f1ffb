import { type Static, Type } from 'typebox';
import { TRIGGER_OUTCOMES } from '../format/choices.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RUN_STATUSES } from '../running/run-status.ts';
import { RunId } from '../running/runs.ts';

const Optional = Type.Optional;

/** How the sender of a request to a trigger is checked; `path` means that knowing the URL is enough. */
export const TRIGGER_SCHEMES = ['github', 'stripe', 'slack', 'hmac', 'path'] as const;
/** One of TRIGGER_SCHEMES. */
export type TriggerScheme = (typeof TRIGGER_SCHEMES)[number];

/** The events of runs, proposals and goals that a trigger of type `event` may wait for. */
export const TRIGGER_EVENTS = [
  'run.completed',
  'run.failed',
  'run.cancelled',
  'proposal.created',
  'proposal.activated',
  'goal.evaluated',
  'goal.closed',
] as const;
/** One of TRIGGER_EVENTS. */
export type TriggerEvent = (typeof TRIGGER_EVENTS)[number];

const Expression = Type.String({ minLength: 1, maxLength: 4_096 });

/** What both types of triggers may say about the runs that they start. */
const mapping = {
  filter: Optional(Expression),
  inputs: Optional(MapOf(Expression)),
};

/** How a sender of its own making signs its requests. */
const HmacConfig = Closed({
  header: Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' }),
  algorithm: Optional(OneOf(['sha256', 'sha512'])),
  encoding: Optional(OneOf(['hex', 'base64'])),
  prefix: Optional(Type.String({ maxLength: 32 })),
  timestampHeader: Optional(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' })),
});
/** A well-formed description of a signature. */
export type HmacConfig = Static<typeof HmacConfig>;

/** The `config` of a trigger of type `webhook`. */
export const WebhookTriggerConfig = Closed({
  scheme: OneOf(TRIGGER_SCHEMES),
  ...mapping,
  hmac: Optional(HmacConfig),
  toleranceSeconds: Optional(Type.Integer({ minimum: 1, maximum: 3_600 })),
  deliveryId: Optional(Expression),
  respond: Optional(OneOf(['run', 'result'])),
  waitSeconds: Optional(Type.Integer({ minimum: 1, maximum: 25 })),
});
/** A well-formed config; that its members go together is checked when the workflow is registered. */
export type WebhookTriggerConfig = Static<typeof WebhookTriggerConfig>;

/** The `config` of a trigger of type `event`. */
export const EventTriggerConfig = Closed(mapping);
/** A well-formed config; which event it is for is the member `eventType` of the trigger. */
export type EventTriggerConfig = Static<typeof EventTriggerConfig>;

const trigger = {
  id: NonEmpty,
  workflowId: NonEmpty,
  name: Type.String({ minLength: 1, description: 'Id of the trigger in the definition of the workflow' }),
  type: OneOf(['webhook', 'event']),
  enabled: Type.Boolean({ description: 'Whether it starts runs' }),
  principal: Type.String({ minLength: 1, description: 'In whose name its runs start' }),
  scheme: Optional(OneOf(TRIGGER_SCHEMES)),
  url: Optional(
    Type.String({ minLength: 1, description: 'Where to send requests; only callers with schedules:write see it' }),
  ),
  hasSecret: Optional(
    Type.Boolean({ description: 'Whether a signing secret is set; without one every request is refused' }),
  ),
  rotatedAt: Optional(Timestamp),
  eventType: Optional(OneOf(TRIGGER_EVENTS)),
  lastError: Optional(
    Type.Object(
      { code: NonEmpty, message: NonEmpty, at: Timestamp },
      { description: 'Why the last event started no run' },
    ),
  ),
  owner: Owner,
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

/** A trigger of a workflow that others set off: a sender of requests, or an event of this host. */
export const Trigger = Type.Object(trigger, { $id: 'Trigger' });
/** A trigger as returned to callers. */
export type Trigger = Static<typeof Trigger>;

/** Replaces the signing secret of a trigger, or its URL. */
export const RotateTriggerRequest = Closed(
  {
    secret: Optional(
      Type.String({
        minLength: 8,
        maxLength: 512,
        pattern: '^[\\x21-\\x7e]+( [\\x21-\\x7e]+)*$',
        description: 'The secret that the sender signs with; without it the host makes one',
      }),
    ),
    url: Optional(Type.Boolean({ description: 'Replace the URL instead of the secret' })),
    graceSeconds: Optional(
      Type.Integer({ minimum: 0, maximum: 604_800, description: 'How long the former one stays valid; defaults to 0' }),
    ),
  },
  { $id: 'RotateTriggerRequest' },
);
/** A well-formed request. */
export type RotateTriggerRequest = Static<typeof RotateTriggerRequest>;

/** A trigger with the secret that the host has just made for it. */
export const RotatedTrigger = Type.Object(
  { ...trigger, secret: Optional(Type.String({ minLength: 1, description: 'Shown only here' })) },
  { $id: 'RotatedTrigger' },
);
/** A rotated trigger; without `secret` the caller knows it already, or the URL was replaced. */
export type RotatedTrigger = Static<typeof RotatedTrigger>;

/** Something that a sender sent to a webhook trigger, and what came of it. */
export const TriggerDelivery = Type.Object(
  {
    id: NonEmpty,
    triggerId: NonEmpty,
    at: Timestamp,
    outcome: OneOf(TRIGGER_OUTCOMES),
    deliveryId: Optional(Type.String({ minLength: 1, description: 'What the sender calls the delivery' })),
    runId: Optional(RunId),
    reason: Optional(
      Type.Object(
        { code: NonEmpty, field: Optional(NonEmpty) },
        { description: 'Why no run was started: an error code, and the field that it is about' },
      ),
    ),
    count: Optional(
      Type.Integer({ minimum: 1, description: 'How many requests this entry represents; few refused ones are stored' }),
    ),
  },
  { $id: 'TriggerDelivery' },
);
/** One line of the delivery log; `at` is the last request where one stands for several. */
export type TriggerDelivery = Static<typeof TriggerDelivery>;

const started = {
  runId: RunId,
  status: OneOf(RUN_STATUSES),
  statusUrl: NonEmpty,
  duplicate: Optional(Type.Boolean({ description: 'An earlier delivery with the same id started the run' })),
};

/** The run that a request started, or the one that an earlier delivery of it had started. */
export const StartedByHook = Type.Object(started, { $id: 'StartedByHook' });
/** A run that goes on, or that nobody waits for. */
export type StartedByHook = Static<typeof StartedByHook>;

/** The answer to a request whose run has ended, or that starts none. */
export const AnsweredByHook = Type.Object(
  {
    ...Type.Partial(Type.Object(started)).properties,
    outputs: Optional(MapOf(AnyObject, { description: 'Outputs of the last nodes of the run, by node id' })),
    error: Optional(Type.Object({ code: NonEmpty, message: Type.String() })),
    ignored: Optional(Type.Boolean({ description: 'The filter of the trigger does not let the request pass' })),
    challenge: Optional(Type.String({ description: 'What Slack sent to see whether the URL is alive' })),
  },
  { $id: 'AnsweredByHook' },
);
/** What the sender of such a request learns. */
export type AnsweredByHook = Static<typeof AnsweredByHook>;

import { type Static, type TSchema, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;
const Reasoning = Optional(Type.String());
const Id = Type.String({ minLength: 1, maxLength: 128 });
const Kind = Type.String({ minLength: 1, maxLength: 256 });

/** Payload schemas of the messages that a model may send to the engine in any workflow, by kind. */
export const ENVELOPE_KINDS = {
  'clarification.request': Closed({
    questions: Type.Array(
      Closed({ id: Id, question: NonEmpty, schema: Optional(AnyObject), context: Optional(AnyObject) }),
      { minItems: 1 },
    ),
    contextType: Optional(Type.String({ maxLength: 128 })),
    reasoning: Reasoning,
  }),
  'schema.request': Closed({
    envelopeType: Kind,
    reason: Optional(Type.String({ maxLength: 1_024 })),
    reasoning: Reasoning,
  }),
  'schema.response': Closed({ envelopeType: Kind, ack: Type.Literal(true) }),
  error: Closed({ code: Id, message: NonEmpty, details: Optional(AnyObject), reasoning: Reasoning }),
} as const satisfies Record<string, TSchema>;

/** A kind that every node accepts. */
export type UniversalKind = keyof typeof ENVELOPE_KINDS;
/** The kinds that every node accepts. */
export const UNIVERSAL_KINDS = Object.keys(ENVELOPE_KINDS) as UniversalKind[];

/** Version of the schemas of the universal kinds, announced in discovery. */
export const ENVELOPE_SCHEMA_VERSION = 1;

const Text = Optional(Type.String());

/** What a model sends to the engine. The schema of the payload depends on `type`. */
export const AiEnvelope = Closed({
  type: Kind,
  schemaVersion: Optional(Type.Integer({ minimum: 0 })),
  envelopeId: Id,
  correlationId: Id,
  nodeId: Optional(Id),
  payload: Type.Unknown(),
  meta: Closed({
    source: OneOf(['ai-generation', 'user', 'system']),
    ts: Timestamp,
    contentTrust: Optional(OneOf(['trusted', 'untrusted'])),
    traceparent: Text,
    label: Optional(Type.String({ maxLength: 256 })),
    rendering: Optional(
      Closed({
        display: Optional(OneOf(['markdown', 'code', 'card', 'image', 'audio', 'file'])),
        mimeType: Text,
        lang: Text,
        alt: Text,
        title: Text,
      }),
    ),
  }),
  partial: Optional(
    Closed({
      isPartial: Type.Boolean(),
      index: Type.Integer({ minimum: 0 }),
      total: Type.Integer({ minimum: -1 }),
    }),
  ),
});
/** A well-formed envelope; its kind decides about the payload. */
export type AiEnvelope = Static<typeof AiEnvelope>;

/** Which kinds of envelope the model of a node may send, besides the universal ones. */
export const EnvelopeContract = Closed({
  accepts: Type.Array(Kind, { maxItems: 100, uniqueItems: true }),
  alwaysAccepted: Optional(Type.Array(OneOf(UNIVERSAL_KINDS), { uniqueItems: true, minItems: UNIVERSAL_KINDS.length })),
  refusalMode: Optional(OneOf(['fail-node', 'discard-and-warn'], { default: 'fail-node' })),
});
/** A well-formed contract. */
export type EnvelopeContract = Static<typeof EnvelopeContract>;

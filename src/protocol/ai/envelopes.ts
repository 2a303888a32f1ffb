import { type TSchema, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty } from '../format/schema.ts';

const Optional = Type.Optional;
const Reasoning = Optional(Type.String());

/** Payload schemas of the messages that a model may send to the engine in any workflow, by kind. */
export const ENVELOPE_KINDS = {
  'clarification.request': Closed({
    questions: Type.Array(
      Closed({
        id: Type.String({ minLength: 1, maxLength: 128 }),
        question: NonEmpty,
        schema: Optional(AnyObject),
        context: Optional(Type.Unknown()),
      }),
      { minItems: 1 },
    ),
    contextType: Optional(Type.String()),
    reasoning: Reasoning,
  }),
  'schema.request': Closed({
    envelopeType: NonEmpty,
    reason: Optional(Type.String({ maxLength: 1_024 })),
    reasoning: Reasoning,
  }),
  'schema.response': Closed({ envelopeType: NonEmpty, ack: Type.Literal(true) }),
  error: Closed({
    code: Type.String({ minLength: 1, maxLength: 128 }),
    message: NonEmpty,
    details: Optional(AnyObject),
    reasoning: Reasoning,
  }),
} as const satisfies Record<string, TSchema>;

/** Version of the envelope schemas, announced in discovery. */
export const ENVELOPE_SCHEMA_VERSION = 1;

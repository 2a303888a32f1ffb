import { readJsonBlocks } from '../../../engine/expressions/json-answer.ts';
import { compileSchema, type SchemaCheck } from '../../../engine/expressions/json-schema.ts';
import {
  AiEnvelope,
  ENVELOPE_KINDS,
  ENVELOPE_SCHEMA_VERSION,
  type EnvelopeContract,
  UNIVERSAL_KINDS,
  type UniversalKind,
} from '../../../protocol/ai/envelopes.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { EnvelopeKind } from '../../../runtime/effects/seams.ts';

/** Something in a model's output that is meant as an envelope. */
export interface Found {
  readonly value: unknown;
  /** Set if it stood in a fenced block. */
  readonly byteOffset?: number;
}

/** An envelope that is not accepted, and why: the code, and an explanation in the words of the host. */
export interface Refusal {
  readonly refused:
    | 'invalid_envelope_shape'
    | 'unknown_envelope_kind'
    | 'unknown_schema_version'
    | 'envelope_invalid'
    | 'envelope_correlation_conflict';
  readonly problem: string;
}

/** Whether every node accepts this kind. */
export function isUniversal(type: unknown): type is UniversalKind {
  return UNIVERSAL_KINDS.includes(type as UniversalKind);
}

/**
 * Finds the envelopes in a model's output: JSON that is the whole output or stands in fenced blocks. A value that
 * `isAnswer` holds for is an answer, unless it names a universal kind.
 */
export function findEnvelopes(text: string, isAnswer: (value: unknown) => boolean = () => false): Found[] {
  if (!text.includes('"')) return [];
  return readJsonBlocks(text).flatMap(({ value, path, byteOffset }) => {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    const isMeant = values.length > 0 && values.every((one) => isEnvelopeLike(one, isAnswer));
    if (!isMeant) return [];
    return values.map((one) => ({ value: one, ...(path === 'direct' ? {} : { byteOffset }) }));
  });
}

/**
 * A universal kind with any other member of an envelope is meant as one. Other JSON must have members that occur
 * together in envelopes only, because a workflow may ask its model for any JSON.
 */
function isEnvelopeLike(value: unknown, isAnswer: (value: unknown) => boolean): boolean {
  if (!isObject(value)) return false;
  const has = (name: string): boolean => Object.hasOwn(value, name);
  if (isUniversal(value.type)) return has('payload') || has('envelopeId') || has('correlationId');
  const others = ['correlationId', 'payload', 'meta'].filter(has).length;
  return (has('envelopeId') ? others > 0 : others === 3) && !isAnswer(value);
}

const envelopeCheck = once(() => compileSchema({ ...AiEnvelope }));

/** The envelope, if its shape is right. */
export function parseShape(value: unknown): AiEnvelope | Refusal {
  const problems = envelopeCheck()(value);
  if (problems.length > 0) return refuse('invalid_envelope_shape', `${problems.join('; ')}.`);
  const envelope = value as AiEnvelope;
  if (Number.isNaN(Date.parse(envelope.meta.ts))) return refuse('invalid_envelope_shape', '/meta/ts is not a time.');
  if (envelope.partial?.isPartial) return refuse('invalid_envelope_shape', '/partial: envelopes are read whole.');
  return envelope;
}

const UNIVERSAL_CHECKS: Record<UniversalKind, () => SchemaCheck> = {
  'clarification.request': once(() =>
    allOf(compileSchema({ ...ENVELOPE_KINDS['clarification.request'] }), questionProblems),
  ),
  'schema.request': once(() => compileSchema({ ...ENVELOPE_KINDS['schema.request'] })),
  'schema.response': once(() => compileSchema({ ...ENVELOPE_KINDS['schema.response'] })),
  error: once(() => compileSchema({ ...ENVELOPE_KINDS.error })),
};

/** Schemas are compiled with the first envelope, because most hosts see none for hours. */
function once(compile: () => SchemaCheck): () => SchemaCheck {
  let check: SchemaCheck | undefined;
  return () => {
    check ??= compile();
    return check;
  };
}

/** The second check gets only what has passed the first. */
function allOf(first: SchemaCheck, second: SchemaCheck): SchemaCheck {
  return (value) => {
    const problems = first(value);
    return problems.length > 0 ? problems : second(value);
  };
}

/** Answers are found by the ids of their questions, and checked with their schemas. */
function questionProblems(payload: unknown): string[] {
  const { questions } = payload as { questions: readonly { id: string; schema?: JsonObject }[] };
  const ids = new Set(questions.map(({ id }) => id));
  const repeated = ids.size < questions.length ? ['/questions has an id twice'] : [];
  return [...repeated, ...questions.flatMap(({ schema }, index) => schemaProblem(schema, index))];
}

function schemaProblem(schema: JsonObject | undefined, index: number): string[] {
  if (!schema) return [];
  try {
    compileSchema(schema);
    return [];
  } catch (error) {
    return [`/questions/${index}/schema is not valid: ${(error as Error).message}`];
  }
}

/** Checks the version and the payload by the rules of the kind; undefined if they are right. */
export function checkPayload(envelope: AiEnvelope, kind: EnvelopeKind | undefined): Refusal | undefined {
  const { type, schemaVersion = 0, payload } = envelope;
  const version = kind?.version ?? ENVELOPE_SCHEMA_VERSION;
  if (schemaVersion > version) {
    return refuse('unknown_schema_version', `The newest version of this kind is ${version}.`);
  }
  const check = isUniversal(type) ? UNIVERSAL_CHECKS[type]() : compileSchema(kind!.schema);
  const problems = check(payload);
  return problems.length > 0 ? refuse('envelope_invalid', `In the payload, ${problems.join('; ')}.`) : undefined;
}

/** Whether the sender used an older schema than the one that its payload was checked with. */
export function hasDrifted({ schemaVersion = 0 }: AiEnvelope, kind: EnvelopeKind | undefined): boolean {
  return schemaVersion < (kind?.version ?? ENVELOPE_SCHEMA_VERSION);
}

/** Whether the node accepts the kind; one without a contract accepts every kind of the host. */
export function isInContract(type: string, contract: EnvelopeContract | undefined): boolean {
  return isUniversal(type) || !contract || contract.accepts.includes(type);
}

/** Makes a refusal. */
export function refuse(refused: Refusal['refused'], problem: string): Refusal {
  return { refused, problem };
}

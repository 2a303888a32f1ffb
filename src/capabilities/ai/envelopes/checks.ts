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
import { schemaProblems } from '../../../runtime/validation/definition-problems.ts';
import type { SchemaValidator } from '../../../runtime/validation/schema-validator.ts';

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
export async function findEnvelopes(text: string, isAnswer: IsAnswer = async () => false): Promise<Found[]> {
  if (!text.includes('"')) return [];
  const found: Found[] = [];
  for (const { value, path, byteOffset } of readJsonBlocks(text)) {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (!(await areEnvelopes(values, isAnswer))) continue;
    found.push(...values.map((one) => ({ value: one, ...(path === 'direct' ? {} : { byteOffset }) })));
  }
  return found;
}

/** Whether a value matches the schema of the answer that the model was asked for. */
export type IsAnswer = (value: unknown) => Promise<boolean>;

async function areEnvelopes(values: readonly unknown[], isAnswer: IsAnswer): Promise<boolean> {
  for (const value of values) if (!(await isEnvelopeLike(value, isAnswer))) return false;
  return values.length > 0;
}

/**
 * A universal kind with any other member of an envelope is meant as one. Other JSON must have members that occur
 * together in envelopes only, because a workflow may ask its model for any JSON.
 */
async function isEnvelopeLike(value: unknown, isAnswer: IsAnswer): Promise<boolean> {
  if (!isObject(value)) return false;
  const has = (name: string): boolean => Object.hasOwn(value, name);
  if (isUniversal(value.type)) return has('payload') || has('envelopeId') || has('correlationId');
  const others = ['correlationId', 'payload', 'meta'].filter(has).length;
  return (has('envelopeId') ? others > 0 : others === 3) && !(await isAnswer(value));
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
  'clarification.request': once(() => compileSchema({ ...ENVELOPE_KINDS['clarification.request'] })),
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

/** Answers are found by the ids of their questions, and checked with their schemas. */
async function questionProblems(payload: unknown, schemas: SchemaValidator): Promise<string[]> {
  const { questions } = payload as { questions: readonly { id: string; schema?: JsonObject }[] };
  const ids = new Set(questions.map(({ id }) => id));
  const repeated = ids.size < questions.length ? ['/questions has an id twice'] : [];
  const found = questions.flatMap(({ schema }, index) =>
    schema ? [{ path: `/questions/${index}/schema`, schema }] : [],
  );
  const invalid = await schemaProblems(found, schemas);
  return [...repeated, ...invalid.map(({ path, message }) => `${path} is not valid: ${message}`)];
}

/** Checks the version and the payload by the rules of the kind; undefined if they are right. */
export async function checkPayload(
  envelope: AiEnvelope,
  kind: EnvelopeKind | undefined,
  schemas: SchemaValidator,
): Promise<Refusal | undefined> {
  const { type, schemaVersion = 0, payload } = envelope;
  const version = kind?.version ?? ENVELOPE_SCHEMA_VERSION;
  if (schemaVersion > version) {
    return refuse('unknown_schema_version', `The newest version of this kind is ${version}.`);
  }
  const problems = isUniversal(type)
    ? await universalProblems(type, payload, schemas)
    : await schemas.validate(kind!.schema, payload);
  return problems.length > 0 ? refuse('envelope_invalid', `In the payload, ${problems.join('; ')}.`) : undefined;
}

async function universalProblems(
  type: UniversalKind,
  payload: unknown,
  schemas: SchemaValidator,
): Promise<readonly string[]> {
  const problems = UNIVERSAL_CHECKS[type]()(payload);
  return problems.length > 0 || type !== 'clarification.request' ? problems : questionProblems(payload, schemas);
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

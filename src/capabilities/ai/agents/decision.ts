import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { SchemaValidator } from '../../../runtime/validation/schema-validator.ts';

/** The decision of an agent. */
export interface Decision {
  readonly value: unknown;
  /** From 0 to 1; absent if the agent gives none. */
  readonly confidence?: number;
  readonly reasoning?: string;
}

/** The schema that a decision must match. */
export interface SchemaRule {
  readonly schema: JsonObject;
}

/**
 * Reads a decision from a model's answer: the envelope `{ decision, … }` if there is one, else the JSON value if a
 * schema is given, else the text as it is.
 */
export async function readDecision(
  text: string,
  rule: SchemaRule | undefined,
  schemas: Pick<SchemaValidator, 'validate'>,
): Promise<Decision | { readonly problem: string }> {
  const read = readJsonAnswer(text);
  const decision =
    isObject(read?.value) && Object.hasOwn(read.value, 'decision') ? fromEnvelope(read.value) : undefined;
  if (!rule) return decision ?? { value: text };
  if (!read) return { problem: 'It is not JSON.' };
  const found = decision ?? { value: read.value };
  const problems = await schemas.validate(rule.schema, found.value);
  return problems.length > 0 ? { problem: `${problems.join('; ')}.` } : found;
}

/** A confidence that is not a number from 0 to 1 is ignored. */
function fromEnvelope({ decision, confidence, reasoning }: JsonObject): Decision {
  const isValid = typeof confidence === 'number' && confidence >= 0 && confidence <= 1;
  return {
    value: decision,
    ...(isValid ? { confidence } : {}),
    ...(typeof reasoning === 'string' ? { reasoning } : {}),
  };
}

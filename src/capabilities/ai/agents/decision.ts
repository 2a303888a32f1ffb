import { readJsonAnswer } from '../../../engine/expressions/json-answer.ts';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';

/** What an agent came to. */
export interface Decision {
  readonly value: unknown;
  /** From 0 to 1; nothing where the agent gives no sign. */
  readonly confidence?: number;
  readonly reasoning?: string;
}

/** What the decision must fit. */
export interface SchemaRule {
  readonly schema: JsonObject;
}

/**
 * What a model has said, as a decision: an object with `decision` in it, as it was asked for; else the JSON that it is,
 * where JSON is wanted; else the words themselves.
 */
export function readDecision(text: string, rule: SchemaRule | undefined): Decision | { readonly problem: string } {
  const read = readJsonAnswer(text);
  const decision =
    isObject(read?.value) && Object.hasOwn(read.value, 'decision') ? fromEnvelope(read.value) : undefined;
  if (!rule) return decision ?? { value: text };
  if (!read) return { problem: 'It is not JSON.' };
  const found = decision ?? { value: read.value };
  const problems = compileSchema(rule.schema)(found.value);
  return problems.length > 0 ? { problem: `${problems.join('; ')}.` } : found;
}

/** How sure a model is counts only where it says so in a way that can be meant. */
function fromEnvelope({ decision, confidence, reasoning }: JsonObject): Decision {
  const isSign = typeof confidence === 'number' && confidence >= 0 && confidence <= 1;
  return {
    value: decision,
    ...(isSign ? { confidence } : {}),
    ...(typeof reasoning === 'string' ? { reasoning } : {}),
  };
}

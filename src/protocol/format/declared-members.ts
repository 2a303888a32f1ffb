import { isObject } from './json.ts';

/** The members of objects that fit a JSON Schema. */
interface DeclaredMembers {
  readonly names: readonly string[];
  /** Those without which no object fits. */
  readonly required: readonly string[];
}

/** Keywords that may allow members beside those that `properties` names. */
const OPENING = ['anyOf', 'oneOf', 'allOf', '$ref', 'if', 'patternProperties', 'dependentSchemas'];

/**
 * The members that a JSON Schema of an object declares; undefined if it does not say, or allows others on purpose. A schema
 * that is silent about others would let them pass, but whoever wrote it does not count on them.
 */
export function declaredMembers(schema: unknown): DeclaredMembers | undefined {
  if (!isObject(schema) || schema.type !== 'object' || !isObject(schema.properties)) return undefined;
  const { properties, required, additionalProperties = false } = schema;
  if (additionalProperties !== false || OPENING.some((keyword) => keyword in schema)) return undefined;
  return { names: Object.keys(properties), required: Array.isArray(required) ? required.map(String) : [] };
}

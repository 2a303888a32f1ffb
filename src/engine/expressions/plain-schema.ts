import { isObject, own } from '../../protocol/format/json.ts';

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'];

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const areNames = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(isText) && new Set(value).size === value.length;
const arePlainSchemas = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(isPlainSchema);

/** What may stand under each keyword of a plain schema: in every dialect it means the same and is valid. */
const KEYWORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) => TYPES.includes(value),
  title: isText,
  description: isText,
  properties: (value) => isObject(value) && Object.values(value).every(isPlainSchema),
  required: areNames,
  additionalProperties: (value) => typeof value === 'boolean',
  items: isPlainSchema,
  enum: areNames,
  oneOf: arePlainSchemas,
  anyOf: arePlainSchemas,
  allOf: arePlainSchemas,
  minimum: isNumber,
  maximum: isNumber,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
};

/**
 * Whether a schema uses nothing but the keywords that most schemas are made of, each as it should be: such a schema is
 * valid, which takes microseconds to see here and tens of milliseconds to find out by compiling it.
 */
export function isPlainSchema(schema: unknown): boolean {
  return (
    isObject(schema) && Object.entries(schema).every(([keyword, value]) => own(KEYWORDS, keyword)?.(value) === true)
  );
}

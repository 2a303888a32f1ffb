import { Ajv2020 } from 'ajv/dist/2020.js';
import { isObject } from '../../protocol/format/json.ts';
import { compilePattern } from './pattern.ts';

/** Says what is wrong with a value, in words that name the place; nothing when it fits. */
export type SchemaCheck = (value: unknown) => readonly string[];

const SCHEMA_CHARS_MAX = 65_536;
const PROBLEMS_MAX = 5;

/** Ajv tells compiled patterns apart by their text. */
const linearRegExp = Object.assign((source: string) => ({ ...compilePattern(source), toString: () => source }), {
  code: 'compilePattern',
});

/**
 * Prepares a JSON Schema (2020-12) that somebody sent us. Throws when it is none. References stay inside the schema:
 * nothing is fetched, and patterns cannot be made to backtrack.
 */
export function compileSchema(schema: unknown): SchemaCheck {
  if (!isObject(schema) && typeof schema !== 'boolean') throw new Error('a JSON Schema is an object');
  if (JSON.stringify(schema).length > SCHEMA_CHARS_MAX) {
    throw new Error(`the schema is longer than ${SCHEMA_CHARS_MAX} characters`);
  }
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false, code: { regExp: linearRegExp } });
  const validate = ajv.compile(withoutId(schema));
  const isFitting = (value: unknown): boolean => {
    try {
      return validate(value) as boolean;
    } catch (error) {
      if (error instanceof RangeError) throw new Error('the schema refers to itself without end', { cause: error });
      throw error;
    }
  };
  isFitting(null);
  return (value) => {
    if (isFitting(value)) return [];
    const errors = (validate.errors ?? []).slice(0, PROBLEMS_MAX);
    return errors.map(({ instancePath, message, params }) => {
      const extra =
        typeof params.additionalProperty === 'string' ? ` (${JSON.stringify(params.additionalProperty)})` : '';
      return `${instancePath || '/'} ${message ?? 'does not fit'}${extra}`;
    });
  };
}

/** Two schemas may carry one `$id`; each stands alone here. */
function withoutId(schema: object | boolean): object | boolean {
  if (typeof schema === 'boolean') return schema;
  const { $id: _id, ...rest } = schema as Record<string, unknown>;
  return rest;
}

import { Ajv2020 } from 'ajv/dist/2020.js';
import { isObject } from '../../protocol/format/json.ts';
import { compilePattern } from './pattern.ts';

/** Validates a value and returns error messages that name the location; empty if it is valid. */
export type SchemaCheck = (value: unknown) => readonly string[];

const SCHEMA_CHARS_MAX = 65_536;
const PROBLEMS_MAX = 5;

/** The pattern engine for Ajv, which identifies compiled patterns by `toString`. */
const linearRegExp = Object.assign((source: string) => ({ ...compilePattern(source), toString: () => source }), {
  code: 'compilePattern',
});

/**
 * Compiles a JSON Schema (2020-12) from an untrusted source; throws if it is invalid. References cannot leave the
 * schema, and patterns run in linear time.
 */
export function compileSchema(schema: unknown): SchemaCheck {
  if (!isObject(schema) && typeof schema !== 'boolean') throw new Error('a JSON Schema must be an object or a boolean');
  if (JSON.stringify(schema).length > SCHEMA_CHARS_MAX) {
    throw new Error(`the schema is longer than ${SCHEMA_CHARS_MAX} characters`);
  }
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false, code: { regExp: linearRegExp } });
  const validate = ajv.compile(withoutId(schema));
  const isValid = (value: unknown): boolean => {
    try {
      return validate(value) as boolean;
    } catch (error) {
      if (error instanceof RangeError) throw new Error('the schema is infinitely recursive', { cause: error });
      throw error;
    }
  };
  isValid(null);
  return (value) => {
    if (isValid(value)) return [];
    const errors = (validate.errors ?? []).slice(0, PROBLEMS_MAX);
    return errors.map(({ instancePath, message, params }) => {
      const extra =
        typeof params.additionalProperty === 'string' ? ` (${JSON.stringify(params.additionalProperty)})` : '';
      return `${instancePath || '/'} ${message ?? 'is not valid'}${extra}`;
    });
  };
}

/** Removes `$id`: Ajv rejects a second schema with the same one. */
function withoutId(schema: object | boolean): object | boolean {
  if (typeof schema === 'boolean') return schema;
  const { $id: _id, ...rest } = schema as Record<string, unknown>;
  return rest;
}

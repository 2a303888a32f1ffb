import type { ValidateFunction } from 'ajv';
import { isObject } from '../../protocol/format/json.ts';
import { dialectOf } from './dialects.ts';
import { compilePattern } from './pattern.ts';

/** Validates a value and returns error messages that name the location; empty if it is valid. */
export type SchemaCheck = (value: unknown) => readonly string[];

const SCHEMA_CHARS_MAX = 65_536;
const PROBLEMS_MAX = 5;
const DRAFT_07 = 'http://json-schema.org/draft-07/schema#';

/** The pattern engine for Ajv, which identifies compiled patterns by `toString`. */
const linearRegExp = Object.assign((source: string) => ({ ...compilePattern(source), toString: () => source }), {
  code: 'compilePattern',
});

/**
 * Compiles a JSON Schema from an untrusted source, in the dialect that its `$schema` names (by default 2020-12); throws
 * if it is invalid. References cannot leave the schema, and patterns run in linear time.
 */
export function compileSchema(schema: unknown): SchemaCheck {
  if (!isObject(schema) && typeof schema !== 'boolean') throw new Error('a JSON Schema must be an object or a boolean');
  if (JSON.stringify(schema).length > SCHEMA_CHARS_MAX) {
    throw new Error(`the schema is longer than ${SCHEMA_CHARS_MAX} characters`);
  }
  const validate = validatorOf(schema);
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

const OPTIONS = {
  strict: false,
  validateFormats: false,
  allErrors: false,
  logger: false,
  code: { regExp: linearRegExp },
} as const;

/**
 * The validator, without the members of the root that mean something to Ajv alone: it looks `$schema` up, rejects an
 * `$id` that it knows, and makes a validator that returns promises of a schema with `$async`.
 */
function validatorOf(schema: object | boolean): ValidateFunction {
  if (typeof schema === 'boolean') return dialectOf(undefined).compiler(OPTIONS).compile(schema);
  const { $schema, $id: _id, id: _oldId, $async: _async, ...rest } = schema as Record<string, unknown>;
  const { compiler, metaSchema } = dialectOf($schema);
  const [problem] = metaSchema ? compileSchema({ $schema: DRAFT_07, ...metaSchema })(rest) : [];
  if (problem !== undefined) throw new Error(`schema is invalid: ${problem}`);
  return compiler(OPTIONS).removeKeyword('id').compile(rest);
}

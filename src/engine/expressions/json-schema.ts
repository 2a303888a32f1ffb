import type { ValidateFunction } from 'ajv';
import { isObject } from '../../protocol/format/json.ts';
import { dialectOf } from './dialects.ts';
import { compilePattern } from './pattern.ts';
import { complexityProblem } from './schema-bounds.ts';

/** Validates a value and returns error messages that name the location; empty if it is valid. */
export type SchemaCheck = (value: unknown) => readonly string[];

/** The longest schema, as JSON. */
export const SCHEMA_CHARS_MAX = 65_536;
const PROBLEMS_MAX = 5;

/** The pattern engine for Ajv, which identifies compiled patterns by `toString`. */
const linearRegExp = Object.assign((source: string) => ({ ...compilePattern(source), toString: () => source }), {
  code: 'compilePattern',
});

/**
 * Compiles a JSON Schema in the dialect that its `$schema` names (by default 2020-12); throws if it is invalid or too
 * complex. References cannot leave the schema, and patterns run in linear time. A schema and a value from untrusted
 * sources can still take very long together: the host validates them with its `SchemaValidator`, off the main thread.
 */
export function compileSchema(schema: unknown): SchemaCheck {
  if (!isObject(schema) && typeof schema !== 'boolean') throw new Error('a JSON Schema must be an object or a boolean');
  const text = JSON.stringify(schema);
  if (text.length > SCHEMA_CHARS_MAX) {
    throw new Error(`the schema is longer than ${SCHEMA_CHARS_MAX} characters`);
  }
  const tooComplex = complexityProblem(schema);
  if (tooComplex !== undefined) throw new Error(tooComplex);
  const validate = validatorOf(schema, /json-schema\.org/.test(text));
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
  validateSchema: false,
  // Inlining repeats the code of a referenced schema, so that compiling would take more than linear time.
  inlineRefs: false,
  allErrors: false,
  logger: false,
  // Optimising the generated code takes longer than all evaluations of most schemas.
  code: { regExp: linearRegExp, optimize: false },
} as const;

/**
 * The validator, without the members of the root that mean something to Ajv alone: it looks `$schema` up, rejects an
 * `$id` that it knows, and makes a validator that returns promises of a schema with `$async`. Each schema has a compiler
 * of its own, because a compiler remembers the `$id`s of every schema that it has seen; `meta` makes it know the
 * meta-schemas, which few schemas refer to.
 */
function validatorOf(schema: object | boolean, meta: boolean): ValidateFunction {
  if (typeof schema === 'boolean')
    return dialectOf(undefined)
      .compiler({ ...OPTIONS, meta })
      .compile(schema);
  const { $schema, $id: _id, id: _oldId, $async: _async, ...rest } = schema as Record<string, unknown>;
  const { compiler, checkSchema } = dialectOf($schema);
  checkSchema(rest);
  return compiler({ ...OPTIONS, meta })
    .removeKeyword('id')
    .compile(rest);
}

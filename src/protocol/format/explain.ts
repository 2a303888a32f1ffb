import { compiledSchema } from './compiled-schema.ts';
import { canonicalJson, deepEqual, isObject } from './json.ts';

/** A part of a value that does not match its schema, and why. Values are never repeated: they may be secret. */
export interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

/** The part of JSON Schema that our own schemas use. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly minProperties?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

const PROBLEMS_MAX = 10;

/**
 * Lists what is wrong with a value, for its author to correct. It stops after PROBLEMS_MAX problems, and takes time
 * linear in the value.
 */
export function explain(schema: object, value: unknown): FieldProblem[] {
  return problemsAt(schema as Schema, value, '')
    .take(PROBLEMS_MAX)
    .toArray();
}

function matches(schema: Schema, value: unknown): boolean {
  return compiledSchema(schema).Check(value);
}

function* problemsAt(schema: Schema, value: unknown, path: string): Generator<FieldProblem> {
  if (schema.anyOf) {
    if (!matchesOneOf(schema.anyOf, value)) yield* problemsAt(intendedAlternative(schema.anyOf, value), value, path);
  } else if (schema.type !== undefined && !typeTests[schema.type]?.(value)) {
    yield { path, message: `must be ${articleFor(schema.type)}` };
  } else {
    yield* textProblems(schema, value, path);
    yield* numberProblems(schema, value, path);
    if (Array.isArray(value)) yield* listProblems(schema, value, path);
    else if (isObject(value)) yield* memberProblems(schema, value, path);
  }
}

const typeTests: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};

function articleFor(type: string): string {
  return type === 'integer' ? 'a whole number' : /^[aio]/.test(type) ? `an ${type}` : `a ${type}`;
}

function matchesOneOf(alternatives: readonly Schema[], value: unknown): boolean {
  return alternatives.some((alternative) => matches(alternative, value));
}

/** The alternative whose tag the value has, else one of the value's type, else the first. */
function intendedAlternative(alternatives: readonly Schema[], value: unknown): Schema {
  const ofType = alternatives.filter(({ type }) => type === undefined || typeTests[type]?.(value));
  const tagged = ofType.find(({ properties = {} }) =>
    Object.entries(properties).some(
      ([name, { const: tag }]) => tag !== undefined && isObject(value) && value[name] === tag,
    ),
  );
  return tagged ?? mergedTags(ofType) ?? ofType[0] ?? alternatives[0]!;
}

/** For alternatives that differ by a tag, and a value with none of them: a schema that lists the tags. */
function mergedTags(alternatives: readonly Schema[]): Schema | undefined {
  const [first] = alternatives;
  const tag = Object.entries(first?.properties ?? {}).find(([, { const: value }]) => value !== undefined)?.[0];
  if (tag === undefined) return undefined;
  const named = alternatives.map(({ properties }) => properties?.[tag]?.const);
  return { type: 'object', required: [tag], properties: { [tag]: { enum: named } } };
}

function* textProblems(schema: Schema, value: unknown, path: string): Generator<FieldProblem> {
  if (schema.const !== undefined && !deepEqual(schema.const, value)) {
    yield { path, message: `must be ${JSON.stringify(schema.const)}` };
  }
  if (schema.enum && !schema.enum.some((allowed) => deepEqual(allowed, value))) {
    yield { path, message: `must be one of ${schema.enum.join(', ')}` };
  }
  if (typeof value !== 'string') return;
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  if (value.length < minLength)
    yield { path, message: minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters` };
  else if (value.length > maxLength) yield { path, message: `must have at most ${maxLength} characters` };
  else if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value)) {
    yield { path, message: `must match ${schema.pattern}` };
  } else if (schema.format !== undefined && !matches(schema, value)) {
    yield { path, message: `must be a ${schema.format}` };
  }
}

function* numberProblems(schema: Schema, value: unknown, path: string): Generator<FieldProblem> {
  if (typeof value !== 'number') return;
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY, exclusiveMinimum } = schema;
  if (value < minimum) yield { path, message: `must be at least ${minimum}` };
  if (value > maximum) yield { path, message: `must be at most ${maximum}` };
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    yield { path, message: `must be more than ${exclusiveMinimum}` };
}

function* listProblems(schema: Schema, value: readonly unknown[], path: string): Generator<FieldProblem> {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  if (value.length < minItems) yield { path, message: `must have at least ${minItems} items` };
  if (value.length > maxItems) yield { path, message: `must have at most ${maxItems} items` };
  if (schema.uniqueItems && new Set(value.map(canonicalJson)).size < value.length)
    yield { path, message: 'must not contain duplicates' };
  if (schema.items)
    for (const [index, item] of value.entries()) yield* problemsAt(schema.items, item, `${path}[${index}]`);
}

function* memberProblems(schema: Schema, value: Record<string, unknown>, path: string): Generator<FieldProblem> {
  const { properties = {}, required = [], additionalProperties, minProperties = 0 } = schema;
  if (Object.keys(value).length < minProperties) {
    const names = Object.keys(properties).join(', ');
    yield { path, message: `must have at least ${minProperties} of ${names}` };
  }
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  for (const name of required) if (!Object.hasOwn(value, name)) yield { path: at(name), message: 'is missing' };
  for (const [name, member] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known) yield* problemsAt(known, member, at(name));
    else if (additionalProperties === false) yield { path: at(name), message: 'is not a known member' };
    else if (isObject(additionalProperties)) yield* problemsAt(additionalProperties as Schema, member, at(name));
  }
}

import { isObject } from '../../src/protocol/format/json.ts';
import { counted } from './numbers.ts';

/** A JSON Schema, as far as forms and editors understand it; what they do not understand is left to the host. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly $ref?: string;
}

/** What is wrong with a value, and where: the path is a JSON pointer. */
export interface SchemaProblem {
  readonly path: string;
  readonly message: string;
}

/** Reads what somebody else wrote as a schema. */
export function schemaIn(value: unknown): Schema {
  return isObject(value) ? (value as Schema) : {};
}

/** The one type of a schema that says so, or that its other members give away. */
export function typeOf({ type, properties, items, prefixItems }: Schema): string | undefined {
  if (typeof type === 'string') return type;
  if (Array.isArray(type)) return type.find((name) => name !== 'null');
  if (properties) return 'object';
  return items || prefixItems ? 'array' : undefined;
}

/** The values that may be chosen, if the schema lists them. */
export function choicesOf(schema: Schema): readonly { readonly value: unknown; readonly label: string }[] | undefined {
  if (schema.enum) return schema.enum.map((value) => ({ value, label: wordsOf(value) }));
  const { oneOf = schema.anyOf } = schema;
  if (!oneOf || oneOf.length === 0 || !oneOf.every((each) => Object.hasOwn(each, 'const'))) return undefined;
  return oneOf.map(({ const: value, title }) => ({ value, label: title ?? wordsOf(value) }));
}

function wordsOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A schema for values that look like this one, so that it can be edited in a form. */
export function schemaLike(value: unknown): Schema {
  if (Array.isArray(value)) {
    const [first, ...others] = value.map(schemaLike);
    const isUniform = others.every((each) => JSON.stringify(each) === JSON.stringify(first));
    if (value.length > 0 && !isUniform) return { type: 'array', prefixItems: value.map(schemaLike) };
    return { type: 'array', items: first ?? { type: 'string' } };
  }
  if (isObject(value)) {
    const members = Object.entries(value).map(([name, member]) => [name, schemaLike(member)] as const);
    return { type: 'object', properties: Object.fromEntries(members) };
  }
  const type = typeof value;
  return type === 'number' || type === 'boolean' ? { type } : { type: 'string' };
}

type Resolve = (ref: string) => Schema | undefined;
type Check = (schema: Schema, value: unknown) => string | false | undefined;

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: isText,
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};

const CHECKS: readonly Check[] = [
  ({ type }, value) => {
    const types = type === undefined ? [] : [type].flat();
    return (
      types.length > 0 && !types.some((name) => TYPES[name]?.(value) ?? true) && `This must be ${types.join(' or ')}.`
    );
  },
  ({ const: wanted }, value) =>
    wanted !== undefined && JSON.stringify(wanted) !== JSON.stringify(value) && `This must be ${wordsOf(wanted)}.`,
  ({ enum: choices }, value) =>
    choices &&
    !choices.some((choice) => JSON.stringify(choice) === JSON.stringify(value)) &&
    `This must be one of ${choices.map(wordsOf).join(', ')}.`,
  ({ minLength = 0 }, value) => isText(value) && value.length < minLength && `At least ${minLength} characters.`,
  ({ maxLength = Number.POSITIVE_INFINITY }, value) =>
    isText(value) && value.length > maxLength && `At most ${maxLength} characters.`,
  ({ pattern }, value) =>
    isText(value) && pattern !== undefined && !fits(pattern, value) && `This must fit ${pattern}.`,
  ({ minimum = Number.NEGATIVE_INFINITY }, value) => isNumber(value) && value < minimum && `At least ${minimum}.`,
  ({ maximum = Number.POSITIVE_INFINITY }, value) => isNumber(value) && value > maximum && `At most ${maximum}.`,
  ({ minItems = 0 }, value) =>
    Array.isArray(value) && value.length < minItems && `At least ${counted(minItems, 'entry', 'entries')}.`,
  ({ maxItems = Number.POSITIVE_INFINITY }, value) =>
    Array.isArray(value) && value.length > maxItems && `At most ${counted(maxItems, 'entry', 'entries')}.`,
];

/** A pattern that this browser cannot read is left to the host. */
function fits(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    return true;
  }
}

/** What is wrong with a value by its schema, as far as the browser can tell. */
export function problemsIn(
  schema: Schema,
  value: unknown,
  resolve: Resolve = () => undefined,
  path = '',
): SchemaProblem[] {
  if (schema.$ref !== undefined) return problemsIn(resolve(schema.$ref) ?? {}, value, resolve, path);
  const message = CHECKS.map((check) => check(schema, value)).find((found) => typeof found === 'string');
  if (typeof message === 'string') return [{ path, message }];
  const options = schema.anyOf ?? schema.oneOf;
  if (options) {
    const tried = options.map((option) => problemsIn(option, value, resolve, path));
    const closest = tried.reduce((best, each) => (each.length < best.length ? each : best));
    if (closest.length > 0) return closest;
  }
  return [...problemsInMembers(schema, value, resolve, path), ...problemsInItems(schema, value, resolve, path)];
}

function problemsInMembers(schema: Schema, value: unknown, resolve: Resolve, path: string): SchemaProblem[] {
  if (!isObject(value)) return [];
  const { properties = {}, required = [], additionalProperties } = schema;
  const at = (name: string): string => `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const missing = required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ path: at(name), message: 'Fill this in.' }));
  const members = Object.entries(value).flatMap(([name, member]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known) return member === undefined ? [] : problemsIn(known, member, resolve, at(name));
    return additionalProperties === false ? [{ path: at(name), message: 'Unknown name.' }] : [];
  });
  return [...missing, ...members];
}

function problemsInItems(
  { items, prefixItems = [] }: Schema,
  value: unknown,
  resolve: Resolve,
  path: string,
): SchemaProblem[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item, index) =>
    problemsIn(prefixItems[index] ?? items ?? {}, item, resolve, `${path}/${index}`),
  );
}

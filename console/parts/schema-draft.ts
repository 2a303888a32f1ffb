import { isObject } from '../../src/protocol/format/json.ts';
import { choicesOf, problemsIn, type Schema, typeOf } from './schema.ts';

/** What a form holds while somebody fills it in: numbers and choices are still text. */
export type Draft = string | boolean | readonly Draft[] | { readonly [name: string]: Draft };

/** What a form says: the value, and what is wrong with it by JSON pointer. */
export interface FilledIn {
  readonly value: unknown;
  readonly problems: Readonly<Record<string, string>>;
}

/** What a form begins with. */
export function draftOf(schema: Schema, value: unknown = schema.default): Draft {
  if (choicesOf(schema)) return value === undefined ? '' : JSON.stringify(value);
  const type = typeOf(schema);
  if (type === 'object') {
    const given = isObject(value) ? value : {};
    const members = Object.entries(schema.properties ?? {});
    return Object.fromEntries(members.map(([name, member]) => [name, draftOf(member, given[name])]));
  }
  if (type === 'array') return draftOfItems(schema, Array.isArray(value) ? value : []);
  if (type === 'boolean') return value === true;
  return value === undefined || value === null ? '' : String(value);
}

function draftOfItems({ items = {}, prefixItems = [] }: Schema, values: readonly unknown[]): Draft {
  return values.map((value, index) => draftOf(prefixItems[index] ?? items, value));
}

/** Reads what was filled in. A field that was left empty is absent, unless it had to be filled in. */
export function readDraft(schema: Schema, draft: Draft): FilledIn {
  const value = readValue(schema, draft) ?? (typeOf(schema) === 'string' ? '' : undefined);
  const problems = problemsIn(value === '' ? { ...schema, minLength: schema.minLength ?? 1 } : schema, value);
  const first = new Map(problems.toReversed().map(({ path, message }) => [path, plain(message)]));
  return { value, problems: Object.fromEntries(first) };
}

function plain(message: string): string {
  return message === 'At least 1 characters.'
    ? 'Fill this in.'
    : message.replace('must be integer', 'must be a whole number');
}

function readValue(schema: Schema, draft: Draft): unknown {
  if (choicesOf(schema)) return draft === '' ? undefined : JSON.parse(String(draft));
  if (typeof draft === 'boolean') return draft;
  if (Array.isArray(draft)) {
    const { items = {}, prefixItems = [] } = schema;
    return draft.map((item, index) => readValue(prefixItems[index] ?? items, item) ?? '');
  }
  if (isObject(draft)) return membersOf(schema, draft as Readonly<Record<string, Draft>>);
  const type = typeOf(schema);
  if (type !== 'number' && type !== 'integer') return draft === '' ? undefined : draft;
  // What is no number stays text, and the check by the schema says so.
  return draft === '' ? undefined : Number.isFinite(Number(draft)) ? Number(draft) : draft;
}

function membersOf({ properties = {}, required = [] }: Schema, draft: Readonly<Record<string, Draft>>): object {
  const read = Object.entries(properties).map(([name, member]) => {
    const value = readValue(member, draft[name] ?? '');
    const isNothing = typeOf(member) === 'object' && !required.includes(name) && Object.keys(value ?? {}).length === 0;
    return [name, isNothing ? undefined : value] as const;
  });
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

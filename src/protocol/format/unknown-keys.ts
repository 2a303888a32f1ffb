import { deepEqual, isObject, type JsonObject, own } from './json.ts';

/** A key that a schema does not list: its dotted path from the root of the value, and a sentence for the author. */
interface UnknownKey {
  readonly path: string;
  readonly message: string;
  /** The known key that it resembles, if there is one. */
  readonly meant?: string;
}

/** The part of JSON Schema that decides which keys are known. */
interface Shape {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Shape;
}

/** More would not help an author; each one costs a comparison with all known keys. */
const UNKNOWN_MAX = 20;
const NAMED_MAX = 12;
const SHOWN_MAX = 64;

/**
 * Lists the keys of a value that its schema does not list, at every depth. An object is taken for closed unless its
 * schema has `additionalProperties`; a value that the schema says nothing about has no unknown keys.
 */
export function unknownKeys(schema: object, value: unknown): UnknownKey[] {
  return unknownAt(schema, value, '').take(UNKNOWN_MAX).toArray();
}

/** Lists the unknown keys that resemble a known one, for objects in which authors may have keys of their own. */
export function misspeltKeys(schema: object, value: unknown): UnknownKey[] {
  return unknownAt(schema, value, '')
    .filter(({ meant }) => meant !== undefined)
    .take(UNKNOWN_MAX)
    .toArray();
}

function* unknownAt(shape: Shape, value: unknown, path: string): Generator<UnknownKey> {
  if (shape.anyOf) {
    const meant = meantBranch(shape.anyOf, value);
    if (meant) yield* unknownAt(meant, value, path);
  } else if (Array.isArray(value)) {
    if (shape.items)
      for (const [index, item] of value.entries()) yield* unknownAt(shape.items, item, `${path}.${index}`);
  } else if (isObject(value)) {
    yield* unknownMembers(shape, value, path);
  }
}

function* unknownMembers(shape: Shape, value: JsonObject, path: string): Generator<UnknownKey> {
  const { properties = {}, additionalProperties } = shape;
  if (!isObjectShape(shape) || additionalProperties === true) return;
  for (const [key, member] of Object.entries(value)) {
    // Escaped as in the paths of the validator, so that both name the same place alike.
    const at = `${path}.${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const known = own(properties, key) ?? (additionalProperties || undefined);
    if (known) yield* unknownAt(known, member, at);
    else yield { path: at, ...remark(key, Object.keys(properties)) };
  }
}

function isObjectShape({ type, properties }: Shape): boolean {
  return type === 'object' || properties !== undefined;
}

/** The alternative that an author meant: the one whose tags fit best, then required keys, then the other keys. */
function meantBranch(branches: readonly Shape[], value: unknown): Shape | undefined {
  const [first, ...others] = branches
    .filter((branch) => branch.anyOf || (Array.isArray(value) ? branch.type === 'array' : isObjectShape(branch)))
    .map((branch) => ({ branch, misfits: misfits(branch, value) }));
  return others.reduce((best, next) => (isLess(next.misfits, best?.misfits) ? next : best), first)?.branch;
}

/** How many tags do not fit, required keys lack and keys are unknown, in the order in which they count. */
function misfits(branch: Shape, value: unknown): number[] {
  const members = isObject(value) ? value : {};
  const { properties = {}, required = [] } = branch;
  const tags = Object.entries(properties).filter(([name, tag]) => !fitsTag(tag, own(members, name)));
  const lacking = required.filter((name) => !Object.hasOwn(members, name));
  return [tags.length, lacking.length, unknownKeys(branch, value).length];
}

function fitsTag({ const: only, enum: allowed = only === undefined ? [] : [only] }: Shape, value: unknown): boolean {
  return value === undefined || allowed.length === 0 || allowed.some((tag) => deepEqual(tag, value));
}

function isLess(a: readonly number[], b: readonly number[] = []): boolean {
  const differing = a.findIndex((count, index) => count !== b[index]);
  return differing >= 0 && a[differing]! < b[differing]!;
}

function remark(key: string, known: readonly string[]): Omit<UnknownKey, 'path'> {
  const shown = key.length > SHOWN_MAX ? `${key.slice(0, SHOWN_MAX)}…` : key;
  const unknown = `The key ${JSON.stringify(shown)} is not known here.`;
  const meant = nearest(key, known);
  if (meant !== undefined) return { message: `${unknown} Did you mean ${JSON.stringify(meant)}?`, meant };
  if (known.length === 0) return { message: unknown };
  const more = known.length > NAMED_MAX ? ` and ${known.length - NAMED_MAX} more` : '';
  return { message: `${unknown} Known are ${known.slice(0, NAMED_MAX).join(', ')}${more}.` };
}

/** The known name that differs least, if a third of the letters or a single one makes the difference. */
export function nearest(key: string, known: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(key.length / 3));
  const close = known
    .filter((name) => Math.abs(name.length - key.length) <= limit)
    .map((name) => ({ name, distance: distanceOf(key.toLowerCase(), name.toLowerCase()) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance);
  return close[0]?.name;
}

/** Letters in another order are one mistake. */
function distanceOf(from: string, to: string): number {
  const sorted = (text: string): string => [...text].sort().join('');
  return from !== to && sorted(from) === sorted(to) ? 1 : editDistance(from, to);
}

/** How many letters must be inserted, removed or replaced to turn one word into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = row[column - 1]! + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[column]! + 1, next[column - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}

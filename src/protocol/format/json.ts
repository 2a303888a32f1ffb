/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object whose members have not been validated. */
export type JsonObject = Record<string, unknown>;

/** Whether a value is an object, and neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * RFC 8785 canonical JSON: equal values give equal text, so hashes do not depend on key order or white space. Keys are
 * sorted by UTF-16 code units.
 */
export function canonicalJson(value: unknown): string {
  return isSorted(value) ? JSON.stringify(value ?? null) : sortedJson(value);
}

/** Whether every object in a value has its keys in canonical order already: then it need not be taken apart. */
function isSorted(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isSorted);
  if (!isObject(value)) return true;
  let previous = '';
  for (const key of Object.keys(value)) {
    if (key < previous || !isSorted(value[key])) return false;
    previous = key;
  }
  return true;
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => sortedJson(item ?? null)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value ?? null);
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${sortedJson(value[key])}`);
  return `{${members.join(',')}}`;
}

/** Structural equality of two JSON values. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && deepEqual(a[key], b[key]))
  );
}

/** An own member of an object, or undefined; inherited members such as `constructor` are ignored. */
export function own<T>(values: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}

/** The value at a dotted path, or undefined. Only own members are followed, so no path reaches a prototype. */
export function valueAt(root: unknown, path: string): unknown {
  let value = root;
  for (const segment of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined;
    value = (value as JsonObject)[segment];
  }
  return value;
}

/** Converts a path such as `a.b[2]` to a JSON pointer; `$` is the whole document. A pointer is returned unchanged. */
export function pointerOf(path: string): string {
  if (path === '' || path === '$') return '';
  return path.startsWith('/') ? path : `/${path.replaceAll(/\[(\d+)\]/g, '.$1').replaceAll('.', '/')}`;
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Removes members whose value is undefined. */
export function defined<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;
}

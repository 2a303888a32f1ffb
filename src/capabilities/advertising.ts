import { isObject, type JsonObject, valueAt } from '../protocol/format/json.ts';

/** Whether discovery says that something which packs call `aiProviders` or `host.kvStorage` is served. */
export function isAdvertised(families: JsonObject, capability: string): boolean {
  const value = valueAt(families, capability.replace(/^(host|openwop)\./, ''));
  return isObject(value) ? value.supported !== false : Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Merges two sets of families member by member; lists are concatenated without duplicates. */
export function combine(left: JsonObject, right: JsonObject): JsonObject {
  const merged = { ...left };
  for (const [key, value] of Object.entries(right)) merged[key] = together(merged[key], value);
  return merged;
}

function together(before: unknown, value: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(value)) return [...new Set([...before, ...value])];
  return isObject(before) && isObject(value) ? combine(before, value) : value;
}

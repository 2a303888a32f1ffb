import { isObject } from '../../src/protocol/format/json.ts';

/** What a field with JSON says: nothing, an object, or what is wrong with it. */
interface ReadObject {
  readonly value?: Record<string, unknown>;
  readonly problem?: string;
}

/** Reads a field that takes a JSON object; an empty one is none. */
export function readJsonObject(text: string): ReadObject {
  if (text.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { value } : { problem: 'This is JSON, but not an object.' };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : ''}` };
  }
}

import type { ToolDescriptor } from '../../../protocol/ai/tools.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';

/** Keywords that combine schemas, or lead to others. Not every model takes them. */
const COMBINATORS: ReadonlySet<string> = new Set([
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentSchemas',
  'dependentRequired',
  'dependencies',
  '$ref',
  '$dynamicRef',
  '$defs',
  'definitions',
]);
/** Members whose values are schemas by name, and those whose value is data and no schema. */
const SCHEMA_MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties']);
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'required']);

/** What a model is told of a tool. Its schema is wider where the full one needs combinators; calls meet the full one. */
export function compact({
  toolId,
  source,
  safetyTier,
  title,
  description,
  inputSchema,
}: ToolDescriptor): ToolDescriptor {
  return {
    toolId,
    source,
    safetyTier,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    inputSchema: { ...plain(inputSchema), type: 'object' },
  };
}

function plain(schema: JsonObject): JsonObject {
  const kept = Object.entries(schema).filter(([keyword]) => !COMBINATORS.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, plainValue(keyword, value)]));
}

function plainValue(keyword: string, value: unknown): unknown {
  if (DATA.has(keyword)) return value;
  if (Array.isArray(value)) return value.map((item) => (isObject(item) ? plain(item) : item));
  if (!isObject(value)) return value;
  if (!SCHEMA_MAPS.has(keyword)) return plain(value);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, isObject(each) ? plain(each) : each]));
}

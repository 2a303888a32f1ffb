/** The part of JSON Schema that our own schemas use. */
export interface Shape {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly minItems?: number;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: boolean | Shape;
}

export interface Taste {
  /** Whether members that may be left out are there. */
  readonly isFull?: boolean;
  /** Texts of members that have these names. */
  readonly named?: Readonly<Record<string, string>>;
  /** Finds a schema that another one refers to. */
  readonly find?: (ref: string) => Shape;
}

/** A value that fits the schema, but for patterns and formats of its texts. */
export function sampleOf(shape: Shape, taste: Taste = {}): unknown {
  if (shape.$ref !== undefined) return sampleOf(taste.find!(shape.$ref), taste);
  if (shape.const !== undefined) return shape.const;
  if (shape.enum) return shape.enum[0];
  if (shape.anyOf) return sampleOf(shape.anyOf.at(-1)!, taste);
  if (shape.type === 'string') return 'x'.repeat(shape.minLength ?? 1);
  if (shape.type === 'integer' || shape.type === 'number') return shape.minimum ?? (shape.exclusiveMinimum ?? -1) + 1;
  if (shape.type === 'boolean') return true;
  if (shape.type === 'null') return null;
  if (shape.type === 'array') return sampleList(shape, taste);
  if (shape.type === 'object' || shape.properties) return sampleObject(shape, taste);
  return {};
}

function sampleList({ items = {}, minItems = 0 }: Shape, taste: Taste): unknown[] {
  return Array.from({ length: Math.max(minItems, taste.isFull ? 1 : 0) }, () => sampleOf(items, taste));
}

function sampleObject({ properties = {}, required = [] }: Shape, taste: Taste): object {
  const names = taste.isFull ? Object.keys(properties) : required;
  const members = names.map((name) => [name, taste.named?.[name] ?? sampleOf(properties[name] ?? {}, taste)]);
  return Object.fromEntries(members);
}

/** Text that is code already. */
export class Raw {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Longer values are spread over several lines. */
const WIDTH = 100;
const INDENT = '  ';
const NAME = /^[A-Za-z_$][\w$]*$/;

/** A JSON value as TypeScript; `depth` is how far the line is indented on which it begins. */
export function literal(value: unknown, depth = 0): string {
  if (value instanceof Raw) return value.text;
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return Array.isArray(value)
    ? spread(
        value.map((item) => ['', item]),
        ['[', ']', ''],
        depth,
      )
    : spread(
        Object.entries(value)
          .filter(([, item]) => item !== undefined)
          .map(([name, item]) => [`${keyOf(name)}: `, item]),
        ['{', '}', ' '],
        depth,
      );
}

/** How a member of a constant is named. */
export function member(name: string): string {
  return NAME.test(name) ? `.${name}` : `[${quoted(name)}]`;
}

/** A call with these arguments. */
export function call(name: string, args: readonly unknown[], depth: number): string {
  return `${name}(${args.map((each) => literal(each, depth)).join(', ')})`;
}

type Entry = readonly [prefix: string, value: unknown];

function spread(
  entries: readonly Entry[],
  [open, close, pad]: readonly [string, string, string],
  depth: number,
): string {
  if (entries.length === 0) return open + close;
  const inline = entries.map(([prefix, value]) => prefix + literal(value, depth + 1)).join(', ');
  if (inline.length <= WIDTH - depth * INDENT.length && !inline.includes('\n'))
    return open + pad + inline + pad + close;
  const inner = INDENT.repeat(depth + 1);
  const lines = entries.map(([prefix, value]) => `${inner}${prefix}${literal(value, depth + 1)},\n`);
  return `${open}\n${lines.join('')}${INDENT.repeat(depth)}${close}`;
}

function keyOf(name: string): string {
  // Written like this, it would set the prototype instead of a member.
  if (name === '__proto__') return `[${quoted(name)}]`;
  return NAME.test(name) ? name : quoted(name);
}

/** As editors write it; everything unusual is escaped as in JSON. */
function quoted(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

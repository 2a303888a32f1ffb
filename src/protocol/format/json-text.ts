/**
 * JSON as it was written. Numbers such as `1.0` and `1e2`, the order of keys and the way characters are escaped are lost
 * when a text is parsed; where bytes count, the text itself is kept. All texts here have been parsed before.
 */

interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const TOKEN = /[{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+/g;

function* tokensOf(text: string): Generator<Token> {
  for (const { 0: token, index } of text.matchAll(TOKEN))
    yield { text: token, start: index, end: index + token.length };
}

/** Where a value stands in a text, and under which names. */
interface Place {
  readonly path: readonly (string | number)[];
  readonly start: number;
  readonly end: number;
}

/** Every member and item, with the names of the objects around it; those inside a value come before it. */
function* placesOf(text: string): Generator<Place> {
  const open: { readonly start: number; readonly isObject: boolean; name: string | number }[] = [];
  const path = (): (string | number)[] => open.map(({ name }) => name);
  let key: string | undefined;
  for (const { text: token, start, end } of tokensOf(text)) {
    const around = open.at(-1);
    if (token === '{' || token === '[') {
      open.push({ start, isObject: token === '{', name: 0 });
    } else if (token === '}' || token === ']') {
      const { start: from } = open.pop()!;
      if (open.length > 0) yield { path: path(), start: from, end };
    } else if (token === ':') {
      around!.name = JSON.parse(key!) as string;
    } else if (token === ',') {
      if (!around!.isObject) around!.name = (around!.name as number) + 1;
      key = undefined;
    } else if (around?.isObject && key === undefined) {
      key = token;
    } else if (around) {
      yield { path: path(), start, end };
    }
    if (token === '{') key = undefined;
  }
}

/** The text of a member of the object that a text holds. */
export function memberText(text: string, name: string): string | undefined {
  let found: string | undefined;
  for (const { path, start, end } of placesOf(text)) {
    if (path.length === 1 && path[0] === name) found = text.slice(start, end);
  }
  return found;
}

/** The path of a key that stands twice in one object: readers differ in which of the two they take. */
export function repeatedKey(text: string): string | undefined {
  const seen = new Set<string>();
  for (const { path } of placesOf(text)) {
    const place = JSON.stringify(path);
    if (seen.has(place)) return `/${path.join('/')}`;
    seen.add(place);
  }
  return undefined;
}

/** The text with one member or item a line, and everything else as it was written. */
export function indented(text: string): string {
  let depth = 0;
  let out = '';
  let before = '';
  const newLine = (): string => `\n${'  '.repeat(depth)}`;
  for (const { text: token } of tokensOf(text)) {
    const isEmpty = (before === '{' && token === '}') || (before === '[' && token === ']');
    if (token === '}' || token === ']') {
      depth--;
      out += isEmpty ? token : newLine() + token;
    } else {
      out += `${before === '{' || before === '[' || before === ',' ? newLine() : ''}${token === ':' ? ': ' : token}`;
    }
    if (token === '{' || token === '[') depth++;
    before = token;
  }
  return out;
}

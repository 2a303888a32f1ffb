/**
 * Works on JSON text without parsing it, because parsing loses the notation of numbers (`1.0`, `1e2`), duplicate keys
 * and escapes; signatures and hashes need the exact text. All inputs must be valid JSON.
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

/** The position of a value in a text, and its path. */
interface Place {
  readonly path: readonly (string | number)[];
  readonly start: number;
  readonly end: number;
}

/** Every member and item with its path; nested values come before the value that contains them. */
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

/** The exact text of a top-level member; undefined if there is none. */
export function memberText(text: string, name: string): string | undefined {
  let found: string | undefined;
  for (const { path, start, end } of placesOf(text)) {
    if (path.length === 1 && path[0] === name) found = text.slice(start, end);
  }
  return found;
}

/** The path of a key that occurs twice in one object, which parsers treat differently; undefined if there is none. */
export function findDuplicateKey(text: string): string | undefined {
  const seen = new Set<string>();
  for (const { path } of placesOf(text)) {
    const place = JSON.stringify(path);
    if (seen.has(place)) return `/${path.join('/')}`;
    seen.add(place);
  }
  return undefined;
}

/** Reformats a text with one member or item per line, keeping every token as written. */
export function indentJson(text: string): string {
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

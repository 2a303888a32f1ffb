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

/** An object or list that is being read. */
interface Container {
  readonly start: number;
  /** The keys so far; undefined for a list. */
  readonly names: Set<string> | undefined;
  /** The key or position of the value that is being read. */
  name: string | number;
  /** Whether the key came before in the same object. */
  isRepeated: boolean;
}

/** The position of a value in a text, with the containers around it, which change as the text is read. */
interface Place {
  readonly around: readonly Container[];
  readonly start: number;
  readonly end: number;
}

/** Every member and item; nested values come before the value that contains them. */
function* placesOf(text: string): Generator<Place> {
  const around: Container[] = [];
  let key: string | undefined;
  for (const { text: token, start, end } of tokensOf(text)) {
    const inner = around.at(-1);
    if (token === '{' || token === '[') {
      around.push({ start, names: token === '{' ? new Set() : undefined, name: 0, isRepeated: false });
    } else if (token === '}' || token === ']') {
      const { start: from } = around.pop()!;
      if (around.length > 0) yield { around, start: from, end };
    } else if (token === ':') {
      enter(inner!, JSON.parse(key!) as string);
    } else if (token === ',') {
      if (!inner!.names) inner!.name = (inner!.name as number) + 1;
      key = undefined;
    } else if (inner?.names && key === undefined) {
      key = token;
    } else if (inner) {
      yield { around, start, end };
    }
    if (token === '{') key = undefined;
  }
}

function enter(container: Container, name: string): void {
  container.name = name;
  container.isRepeated = container.names!.has(name);
  container.names!.add(name);
}

/** The exact text of a top-level member; undefined if there is none. */
export function memberText(text: string, name: string): string | undefined {
  let found: string | undefined;
  for (const { around, start, end } of placesOf(text)) {
    if (around.length === 1 && around[0]!.name === name) found = text.slice(start, end);
  }
  return found;
}

/** The path of a key that occurs twice in one object, which parsers treat differently; undefined if there is none. */
export function findDuplicateKey(text: string): string | undefined {
  for (const { around } of placesOf(text)) {
    if (around.at(-1)!.isRepeated) return `/${around.map(({ name }) => name).join('/')}`;
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

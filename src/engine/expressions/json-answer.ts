/** JSON that was found in a model's output. */
interface JsonAnswer {
  readonly value: unknown;
  /** How it was found; recorded in `envelope.recovery.applied`. */
  readonly path: 'direct' | 'markdown-fence' | 'brace-walker';
  readonly byteOffset: number;
}

const FENCE = /```(?:json)?[ \t]*\n([\s\S]*?)```/;
const FENCE_END = '```';
const FENCES = new RegExp(FENCE, 'g');

/** Extracts JSON from a model's output: the whole text, a fenced block, or the first balanced brackets within prose. */
export function readJsonAnswer(text: string): JsonAnswer | undefined {
  const direct = parse(text);
  if (direct) return { ...direct, path: 'direct', byteOffset: 0 };
  const fence = FENCE.exec(text);
  const fenced = fence && parse(fence[1]!);
  if (fenced) return { ...fenced, path: 'markdown-fence', byteOffset: bytesBetween(text, 0, contentStart(fence)) };
  const begin = text.search(/[{[]/);
  const end = begin < 0 ? -1 : closingOf(text, begin);
  const walked = end < 0 ? undefined : parse(text.slice(begin, end + 1));
  return walked && { ...walked, path: 'brace-walker', byteOffset: bytesBetween(text, 0, begin) };
}

/** The JSON values that an output consists of or holds in fenced blocks; what else stands in it is prose. */
export function readJsonBlocks(text: string): JsonAnswer[] {
  const direct = parse(text);
  if (direct) return [{ ...direct, path: 'direct', byteOffset: 0 }];
  let [counted, byteOffset] = [0, 0];
  return [...text.matchAll(FENCES)].flatMap((fence) => {
    const fenced = parse(fence[1]!);
    if (!fenced) return [];
    const start = contentStart(fence);
    byteOffset += bytesBetween(text, counted, start);
    counted = start;
    return [{ ...fenced, path: 'markdown-fence' as const, byteOffset }];
  });
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Index of the bracket that closes the one at `begin`; -1 if there is none. */
function closingOf(text: string, begin: number): number {
  let depth = 0;
  let isQuoted = false;
  for (let at = begin; at < text.length; at++) {
    const character = text[at]!;
    if (isQuoted && character === '\\') at++;
    else if (character === '"') isQuoted = !isQuoted;
    else if (isQuoted) continue;
    else if (character === '{' || character === '[') depth++;
    else if ((character === '}' || character === ']') && --depth === 0) return at;
  }
  return -1;
}

/** Where the content of a fenced block begins. */
function contentStart({ 0: block, 1: content = '', index }: RegExpExecArray): number {
  return index + block.length - FENCE_END.length - content.length;
}

function bytesBetween(text: string, start: number, end: number): number {
  return Buffer.byteLength(text.slice(start, end));
}

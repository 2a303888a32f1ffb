import type { Figure, Subject } from './figure.ts';
import { lineAt, type Node, type SourceFile, walk } from './sources.ts';

/** Functions with more lines do not fit on a screen. */
export const LONG_FUNCTION_LINES = 70;
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** How much there is: files, lines, functions, comments. */
export function sizeFigures({ sources }: Subject): Figure[] {
  const lines = sum(sources, ({ text }) => linesIn(text));
  const comments = sum(sources, commentLines);
  const functions = sources.flatMap(functionsIn);
  const long = functions.filter((found) => found.lines > LONG_FUNCTION_LINES);
  const places = long.map(({ place, name, lines }) => `${place} ${name} (${lines} lines)`);
  return [
    { name: 'files', value: sources.length },
    { name: 'lines', value: lines },
    { name: 'comment lines', value: Math.round((1_000 * comments) / lines) / 10, unit: '%' },
    { name: 'functions', value: functions.length },
    { name: `functions over ${LONG_FUNCTION_LINES} lines`, value: long.length, places },
  ];
}

interface FoundFunction {
  readonly place: string;
  readonly name: string;
  readonly lines: number;
}

function functionsIn({ path, text, program }: SourceFile): FoundFunction[] {
  const found: FoundFunction[] = [];
  const names = new Map<unknown, string>();
  walk(program, (node) => {
    for (const [value, name] of namedValues(node)) names.set(value, name);
    if (!FUNCTIONS.has(node.type) || !node.body) return;
    const first = lineAt(text, node.start);
    const lines = lineAt(text, node.end) - first + 1;
    found.push({ place: `${path}:${first}`, name: nameOf(node.id) ?? names.get(node) ?? 'anonymous', lines });
  });
  return found;
}

/** The functions that get their name from what they are assigned to. */
function namedValues({ type, id, key, init, value }: Node): [unknown, string][] {
  if (type === 'VariableDeclarator') return [[init, nameOf(id) ?? '']];
  return value && key ? [[value, nameOf(key) ?? '']] : [];
}

function nameOf(node: unknown): string | undefined {
  const { name } = (node ?? {}) as { name?: unknown };
  return typeof name === 'string' ? name : undefined;
}

function commentLines({ text, comments }: SourceFile): number {
  const lines = new Set<number>();
  for (const { start, end } of comments) {
    for (let line = lineAt(text, start); line <= lineAt(text, end); line++) lines.add(line);
  }
  const all = text.split('\n');
  return [...lines].filter((line) => /^\s*(?:\/\/|\/\*|\*)/.test(all[line - 1] ?? '')).length;
}

function linesIn(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

function sum(sources: readonly SourceFile[], count: (source: SourceFile) => number): number {
  return sources.reduce((total, source) => total + count(source), 0);
}

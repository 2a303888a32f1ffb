import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ESTree, type ParseResult, parseSync } from 'vite';

/** A parsed source file of a checkout. */
export interface SourceFile {
  /** Relative to the checkout, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly program: ESTree.Program;
  readonly comments: ParseResult['comments'];
  /** Everything that it imports or exports again from other files, types included. */
  readonly imports: readonly Import[];
  readonly exports: ParseResult['module']['staticExports'];
}

/** One import of another file of the checkout. */
export interface Import {
  readonly target: string;
  /** The imported names; undefined when all of them may be used. */
  readonly names: readonly string[] | undefined;
}

/** Any node of the syntax tree, with its members unknown. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

/** Tests, and files that only tests import. */
export function isForTests(path: string): boolean {
  return path.endsWith('.test.ts') || path.endsWith('/testing.ts');
}

/** Parses the TypeScript files of a folder of a checkout. */
export function readSources(checkout: string, folder: string): SourceFile[] {
  const paths = globSync(`${folder}/**/*.ts`, { cwd: checkout }).map((path) => path.replaceAll('\\', '/'));
  return paths.sort().map((path) => parse(path, readFileSync(join(checkout, path), 'utf8')));
}

/** Calls back for a node and everything below it. */
export function walk(value: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, visit);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value && typeof value.type === 'string') visit(value as Node);
  for (const member of Object.values(value)) walk(member, visit);
}

/** The number of the line at an offset, from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

function parse(path: string, text: string): SourceFile {
  const { program, module, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const imports = [...staticImports(module), ...inlineImports(program)].flatMap(({ from, names }) =>
    from.startsWith('.') ? [{ target: join(dirname(path), from).replaceAll('\\', '/'), names }] : [],
  );
  return { path, text, program, comments, imports, exports: module.staticExports };
}

interface Reference {
  readonly from: string;
  readonly names: readonly string[] | undefined;
}

function staticImports({ staticImports, staticExports }: ParseResult['module']): Reference[] {
  const imported = staticImports.map(({ moduleRequest, entries }) => ({
    from: moduleRequest.value,
    names: namesOf(entries.map(({ importName }) => importName)),
  }));
  const exportedAgain = staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ moduleRequest, importName }) =>
      moduleRequest ? [{ from: moduleRequest.value, names: namesOf([importName]) }] : [],
    ),
  );
  return [...imported, ...exportedAgain];
}

function namesOf(
  names: readonly { readonly kind: string; readonly name?: string | null | undefined }[],
): string[] | undefined {
  if (names.some(({ kind }) => kind !== 'Name')) return undefined;
  return names.map(({ name }) => name ?? '');
}

/** `import('./a.ts')` as an expression, and as a type. */
function inlineImports(program: ESTree.Program): Reference[] {
  const found: Reference[] = [];
  walk(program, ({ type, source }) => {
    if (type !== 'ImportExpression' && type !== 'TSImportType') return;
    const { value } = (source ?? {}) as { value?: unknown };
    if (typeof value === 'string') found.push({ from: value, names: undefined });
  });
  return found;
}

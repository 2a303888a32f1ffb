import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Writes docs/build-api.md, the reference of `capstan/build`, from its types and their comments. */

const ENTRY = new URL('../src/build/index.ts', import.meta.url);
const PAGE = new URL('../docs/build-api.md', import.meta.url);

const HEAD = `# Reference of \`capstan/build\`

What projects and programs import from \`capstan/build\`. This page is made from the types (\`node scripts/build-api.ts\`).
[Your first node](your-first-node.md), [projects](projects.md) and [workers](workers.md) say how it is used.

\`Type\` is that of [TypeBox](https://github.com/sinclairzx81/typebox): \`Type.Object({ number: Type.String() })\`.
`;

/** A declaration: how it is written, without any code, and its comment. */
interface Entry {
  readonly name: string;
  readonly kind: string;
  readonly comment: string;
  readonly text: string;
}

/** The page, from the sources as they are. */
export function buildApi(): string {
  const entries = exportsOf(readFileSync(ENTRY, 'utf8')).map(({ name, file }) => entryOf(name, new URL(file, ENTRY)));
  const byName = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const isCalled = ({ kind }: Entry): boolean => kind === 'function';
  return [
    HEAD,
    '## Functions\n',
    ...byName.filter(isCalled).map(sectionOf),
    '## Types and classes\n',
    ...byName.filter((entry) => !isCalled(entry)).map(sectionOf),
  ].join('\n');
}

function sectionOf({ name, comment, text }: Entry): string {
  return `### \`${name}\`\n\n${comment}\n\n\`\`\`text\n${text}\n\`\`\`\n`;
}

/** What the entry exports from files of its own. */
function exportsOf(source: string): { readonly name: string; readonly file: string }[] {
  return [...source.matchAll(/export (?:type )?\{([^}]*)\} from '(\.[^']+)'/g)].flatMap(([, names = '', file = '']) =>
    names
      .split(',')
      .map((name) => name.replace(/^\s*type\s+/, '').trim())
      .filter((name) => name !== '')
      .map((name) => ({ name, file })),
  );
}

function entryOf(name: string, file: URL): Entry {
  const source = readFileSync(file, 'utf8');
  // Where a schema and its type share a name, the type is what programs import.
  const found = source.match(new RegExp(`^export (?:async )?(interface|class|type|function) ${name}\\b`, 'm'));
  if (found?.index === undefined) throw new Error(`${fileURLToPath(file)} does not export ${name}.`);
  const [, kind = ''] = found;
  const comment = /\/\*\*((?:(?!\*\/).)*)\*\/\n$/s.exec(source.slice(0, found.index))?.[1] ?? '';
  return { name, kind, comment: sentences(comment), text: textOf(kind, source.slice(found.index + 'export '.length)) };
}

function sentences(comment: string): string {
  return comment
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, '').trimEnd())
    .join('\n')
    .trim();
}

function textOf(kind: string, source: string): string {
  if (kind === 'type') return upTo(source, (rest) => rest.startsWith(';'));
  if (kind === 'function') return upTo(source, (rest) => rest.startsWith(' {\n'));
  const body = source.slice(0, source.indexOf('\n}') + 2);
  return kind === 'interface' ? body : withoutCode(body);
}

/** The text up to a place outside of all brackets. */
function upTo(source: string, isEnd: (rest: string) => boolean): string {
  let depth = 0;
  for (let index = 0; index < source.length; index++) {
    if (depth === 0 && isEnd(source.slice(index, index + 3))) return source.slice(0, index);
    // The bracket of an arrow closes nothing.
    if (/[([{<]/.test(source[index]!)) depth++;
    else if (/[)\]}]/.test(source[index]!) || (source[index] === '>' && source[index - 1] !== '=')) depth--;
  }
  throw new Error(`This declaration has no end: ${source.slice(0, 80)}`);
}

/** A class without its private members and the code of the others. */
function withoutCode(body: string): string {
  return body
    .replaceAll(/^ {2}(?:readonly )?#.*\n/gm, '')
    .replaceAll(/^( {2}\S[^\n]*) \{\n(?: {4}[^\n]*\n|\n)* {2}\}$/gm, '$1;')
    .replaceAll(/\n{3,}/g, '\n\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, buildApi());

import type { Figure, Subject } from './figure.ts';
import { lineAt, type Node, type SourceFile, walk } from './sources.ts';

interface Habit {
  readonly name: string;
  isOne(node: Node, source: SourceFile): boolean;
}

const identifier = (...names: readonly string[]): Habit => ({
  name: `identifier ${names.join(' or ')}`,
  isOne: ({ type, name }) => type === 'Identifier' && names.includes(String(name)),
});

const LATE_REGISTRATIONS = /^(?:startWith|decideWith|accompany|onOpinion)$/;
const SQL =
  /^\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE (?:UNIQUE )?(?:TABLE|INDEX)|ALTER TABLE|WITH \w+ AS)\s/;
const SQL_HOMES = /\/store\/|\/records\.ts$/;

const HABITS: readonly Habit[] = [
  { name: 'casts `as never`', isOne: (node) => castsTo(node, 'TSNeverKeyword') },
  {
    name: 'casts `as unknown as`',
    isOne: (node) => node.type === 'TSAsExpression' && castsTo(node.expression as Node, 'TSUnknownKeyword'),
  },
  { name: 'parameters of type never', isOne: isNeverParameter },
  identifier('also', 'Also'),
  identifier('remember'),
  identifier('committed'),
  { name: 'optimistic retry loops', isOne: isRetryLoop },
  {
    name: 'late registrations',
    isOne: ({ type, callee }) =>
      type === 'CallExpression' && LATE_REGISTRATIONS.test(String((callee as { property?: Node }).property?.name)),
  },
  { name: 'SQL outside store and records', isOne: (node, { path }) => !SQL_HOMES.test(path) && isSql(node) },
];

/** How often the code does what it should do less of. Most of these are heuristics over names. */
export function habitFigures({ sources }: Subject): Figure[] {
  const found = sources.map(placesIn);
  return HABITS.map(({ name }, habit) => {
    const places = found.flatMap((places) => places[habit]!);
    return { name, value: places.length, places };
  });
}

/** The places of each habit in a file, in one walk. */
function placesIn(source: SourceFile): string[][] {
  // A shorthand member such as `{ also }` is two nodes at one place.
  const starts = HABITS.map(() => new Set<number>());
  walk(source.program, (node) => {
    for (const [habit, { isOne }] of HABITS.entries()) if (isOne(node, source)) starts[habit]!.add(node.start);
  });
  return starts.map((all) => [...all].map((start) => `${source.path}:${lineAt(source.text, start)}`));
}

function castsTo({ type, typeAnnotation }: Node, keyword: string): boolean {
  return type === 'TSAsExpression' && (typeAnnotation as Node).type === keyword;
}

/** Where a function says that nobody can call it with anything: its types do not fit those of its callers. */
function isNeverParameter({ type, typeAnnotation }: Node): boolean {
  const annotation = (typeAnnotation as { typeAnnotation?: Node } | null)?.typeAnnotation;
  return type === 'Identifier' && annotation?.type === 'TSNeverKeyword';
}

function isRetryLoop({ type, init }: Node, { text }: SourceFile): boolean {
  if (type !== 'ForStatement' || !init) return false;
  const { start, end } = init as Node;
  return /^let (?:tries|attempts?|retries)\b/.test(text.slice(start, end));
}

function isSql({ type, value }: Node): boolean {
  const text =
    type === 'TemplateElement' ? (value as { cooked?: string }).cooked : type === 'Literal' ? value : undefined;
  return typeof text === 'string' && SQL.test(text);
}

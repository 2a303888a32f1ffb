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
const SQL_HOMES = /\/store\/|\/(?:[\w-]+-)?records\.ts$/;
/** The write path and the store below it: there is no other home of commits, nor of retries after conflicts. */
const COMMIT_HOMES = /^src\/(?:store\/|runtime\/change\.ts$)/;
/** Writes that a loop may repeat after a conflict; `commitOrThrow` has none. */
const WRITES = /\bperform\(|\bcommitOnce\(|\bstore\.commit(?:<\w+>)?\(/;
const LOOPS: readonly string[] = ['ForStatement', 'WhileStatement', 'DoWhileStatement'];

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
  {
    name: 'commits outside change.ts and store',
    isOne: (node, { path, text }) => !COMMIT_HOMES.test(path) && isStoreCommit(node, text),
  },
  {
    name: 'retry loops outside change.ts and store',
    isOne: (node, { path, text }) => !COMMIT_HOMES.test(path) && (isRetryLoop(node, text) || isRetryByRecursion(node)),
  },
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

/** `store.commit(…)`, whatever leads to the store. A journal and the holder of a node have a `commit` of their own. */
function isStoreCommit({ type, callee }: Node, text: string): boolean {
  const { object, property } = (callee ?? {}) as { object?: Node; property?: Node };
  if (type !== 'CallExpression' || !object || property?.name !== 'commit') return false;
  return /store$/i.test(text.slice(object.start, object.end));
}

/** A loop that counts its attempts, or that writes. One over given items, `for … of`, repeats nothing. */
function isRetryLoop({ type, start, end, init }: Node, text: string): boolean {
  if (!LOOPS.includes(type)) return false;
  const { start: from, end: to } = (init ?? { start, end: start }) as Node;
  const isCounting = /^let (?:tries|attempts?|retries|conflicts|retryMs|pauseMs)\b/.test(text.slice(from, to));
  return isCounting || WRITES.test(text.slice(start, end));
}

/** A function that calls itself with what it was called with. */
function isRetryByRecursion({ type, id, params, body }: Node): boolean {
  if (type !== 'FunctionDeclaration' || !id) return false;
  const { name } = id as Node;
  const given = namesIn(params).join();
  let isFound = false;
  walk(body, (node) => {
    const isItself = node.type === 'CallExpression' && (node.callee as Node).name === name;
    if (isItself && namesIn(node.arguments).join() === given) isFound = true;
  });
  return isFound;
}

/** The names of values in parameters or arguments, in order; those of types are none. */
function namesIn(value: unknown, found: string[] = []): string[] {
  if (Array.isArray(value)) for (const item of value) namesIn(item, found);
  else if (typeof value === 'object' && value !== null) {
    const { type, name, typeAnnotation: _types, key: _key, ...members } = value as Node;
    if (type === 'Identifier') found.push(String(name));
    else for (const member of Object.values(members)) namesIn(member, found);
  }
  return found;
}

function isSql({ type, value }: Node): boolean {
  const text =
    type === 'TemplateElement' ? (value as { cooked?: string }).cooked : type === 'Literal' ? value : undefined;
  return typeof text === 'string' && SQL.test(text);
}

/** A member that an expression reads by a fixed name: `nodes.count.open` has the root `nodes` and the path below it. */
export interface Reference {
  readonly root: string;
  readonly path: readonly string[];
  /** The expression copes with a member that is missing: it asks for it with `has`, `in` or `.?`. */
  readonly isGuarded: boolean;
}

/** What an expression reads: a root alone is read as a whole, or by a name that is computed. */
export type Read = Pick<Reference, 'root' | 'path'>;

/** The library's syntax tree before it is checked, as far as it is read here. */
interface Part {
  readonly op: string;
  readonly args: unknown;
}

/**
 * Lists the members of the roots that an expression reads by fixed names. A root whose name a loop of the expression
 * uses for its items is left out, because there it means something else.
 */
export function referencesIn(tree: unknown, roots: readonly string[]): Reference[] {
  const found: Reference[] = [];
  const loops = new Set<string>();
  const visit = (value: unknown, isGuarded: boolean): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, isGuarded);
    if (!isPart(value)) return;
    const loop = loopNameOf(value);
    if (loop !== undefined) loops.add(loop);
    const chain = chainOf(value);
    if (chain) found.push({ ...chain, isGuarded: isGuarded || chain.isGuarded });
    const rest = chain ? [] : value.args;
    visit(rest, isGuarded || isCall(value, 'has'));
  };
  visit(tree, false);
  return found.filter(({ root, path }) => roots.includes(root) && !loops.has(root) && path.length > 0);
}

/**
 * Lists all that an expression may read. To ask whether a root has a member reads nothing. The items of loops are left
 * out; what they are taken from is in the list.
 */
export function readsIn(tree: unknown, roots: readonly string[]): Read[] {
  const found: Read[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (!isPart(value)) return;
    const chain = value.op === 'in' ? undefined : chainOf(value);
    if (chain) found.push(chain);
    else visit(asksForMember(value) ? (value.args as unknown[])[0] : value.args);
  };
  visit(tree);
  return found.filter(({ root }) => roots.includes(root));
}

function asksForMember({ op, args }: Part): boolean {
  const [, owner] = op === 'in' ? (args as [unknown, unknown]) : [];
  return isPart(owner) && owner.op === 'id';
}

function isPart(value: unknown): value is Part {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}

function isCall({ op, args }: Part, name: string): boolean {
  return op === 'call' && Array.isArray(args) && args[0] === name;
}

/** The name of the items in `list.filter(name, …)` and the other macros. */
function loopNameOf({ op, args }: Part): string | undefined {
  if (op !== 'rcall' || !Array.isArray(args)) return undefined;
  const [first] = (args[2] ?? []) as unknown[];
  return isPart(first) && first.op === 'id' ? String(first.args) : undefined;
}

/** Reads `a.b["c"]` as a root and a path. Undefined for a name that is computed, which is then searched on its own. */
function chainOf(part: Part): Reference | undefined {
  if (part.op === 'id') return { root: String(part.args), path: [], isGuarded: false };
  if (part.op === 'in') return membershipOf(part);
  if (!['.', '.?', '[]', '[?]'].includes(part.op)) return undefined;
  const [owner, member] = part.args as [unknown, unknown];
  const inner = isPart(owner) ? chainOf(owner) : undefined;
  const name = typeof member === 'string' ? member : textOf(member);
  if (!inner || name === undefined) return undefined;
  return {
    root: inner.root,
    path: [...inner.path, name],
    isGuarded: inner.isGuarded || part.op.includes('?'),
  };
}

/** `"name" in variables` asks for a member. */
function membershipOf({ args }: Part): Reference | undefined {
  const [member, owner] = args as [unknown, unknown];
  const name = textOf(member);
  const inner = isPart(owner) ? chainOf(owner) : undefined;
  return inner && name !== undefined ? { ...inner, path: [...inner.path, name], isGuarded: true } : undefined;
}

function textOf(part: unknown): string | undefined {
  return isPart(part) && part.op === 'value' && typeof part.args === 'string' ? part.args : undefined;
}

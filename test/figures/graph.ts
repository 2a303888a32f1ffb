import type { Figure, Subject } from './figure.ts';
import type { SourceFile } from './sources.ts';

/** Whether files, or the folders of capabilities, import each other in circles, imports of types included. */
export function cycleFigures({ sources }: Subject): Figure[] {
  const knots = knotsIn(importsOf(sources, (path) => path));
  const places = knots.map((files) => `${files.length} files: ${files.toSorted().join(', ')}`);
  const folders = knotsIn(importsOf(sources, capabilityOf));
  return [
    { name: 'files in the largest import cycle', value: Math.max(0, ...knots.map(({ length }) => length)), places },
    { name: 'files in any import cycle', value: knots.flat().length },
    {
      name: 'capabilities in any import cycle',
      value: folders.flat().length,
      places: folders.flatMap((knot) => importsWithin(sources, new Set(knot))),
    },
  ];
}

/**
 * The folder of the capability that a file belongs to; those of the conformance scaffolding are one. Settings belong to
 * none: they are values that several capabilities may read.
 */
function capabilityOf(path: string): string | undefined {
  if (path.endsWith('/settings.ts')) return undefined;
  return /^src\/capabilities\/(conformance|[^/]+\/[^/]+)\//.exec(path)?.[1];
}

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** Who imports whom, by file or by whatever files are grouped into. Files without a group are left out. */
function importsOf(sources: readonly SourceFile[], groupOf: (path: string) => string | undefined): Graph {
  const targets = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    const group = groupOf(path);
    if (group === undefined) continue;
    const found = targets.get(group) ?? new Set();
    for (const { target } of imports) found.add(groupOf(target) ?? '');
    targets.set(group, found);
  }
  return targets;
}

/** The imports that lead from one folder of a cycle to another. */
function importsWithin(sources: readonly SourceFile[], folders: ReadonlySet<string>): string[] {
  return sources.flatMap(({ path, imports }) => {
    const from = capabilityOf(path);
    if (from === undefined || !folders.has(from)) return [];
    const others = imports.filter(({ target }) => capabilityOf(target) !== from);
    return others
      .filter(({ target }) => folders.has(capabilityOf(target) ?? ''))
      .map(({ target }) => `${path} imports ${target}`);
  });
}

/** Groups of two or more that reach each other, by Tarjan's algorithm. */
function knotsIn(targets: Graph): string[][] {
  const found = new Map<string, { readonly index: number; low: number; isOpen: boolean }>();
  const stack: string[] = [];
  const groups: string[][] = [];
  const visit = (path: string): { low: number; isOpen: boolean } => {
    const state = { index: found.size, low: found.size, isOpen: true };
    found.set(path, state);
    stack.push(path);
    for (const target of targets.get(path)!) {
      if (!targets.has(target)) continue;
      const other = found.get(target);
      if (other === undefined) state.low = Math.min(state.low, visit(target).low);
      else if (other.isOpen) state.low = Math.min(state.low, other.index);
    }
    if (state.low === state.index) groups.push(closeGroup(path));
    return state;
  };
  const closeGroup = (root: string): string[] => {
    const group = stack.splice(stack.indexOf(root));
    for (const path of group) found.get(path)!.isOpen = false;
    return group;
  };
  for (const path of targets.keys()) if (!found.has(path)) visit(path);
  return groups.filter(({ length }) => length > 1);
}

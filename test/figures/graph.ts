import type { Figure, Subject } from './figure.ts';
import type { SourceFile } from './sources.ts';

/** Whether files import each other in circles, imports of types included. */
export function cycleFigures({ sources }: Subject): Figure[] {
  const knots = stronglyConnected(sources).filter((files) => files.length > 1);
  const places = knots.map((files) => `${files.length} files: ${files.toSorted().join(', ')}`);
  return [
    { name: 'files in the largest import cycle', value: Math.max(0, ...knots.map(({ length }) => length)), places },
    { name: 'files in any import cycle', value: knots.flat().length },
  ];
}

/** Tarjan's algorithm: groups of files that reach each other. */
function stronglyConnected(sources: readonly SourceFile[]): string[][] {
  const targets = new Map(sources.map(({ path, imports }) => [path, imports.map(({ target }) => target)]));
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
  return groups;
}

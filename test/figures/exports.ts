import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Subject } from './figure.ts';
import { lineAt, type SourceFile } from './sources.ts';

/** Exports that nobody imports, and exports that nobody explained. */
export function exportFigures({ checkout, sources, everything }: Subject): Figure[] {
  const used = usedNames(everything);
  const entries = entryPoints(checkout);
  const unused = sources
    .filter(({ path }) => !entries.has(path))
    .flatMap((source) => exportsOf(source).filter(({ name }) => !used(source.path, name)));
  const silent = sources.flatMap((source) => exportsOf(source).filter(({ isDocumented }) => !isDocumented));
  const place = ({ place, name }: FoundExport): string => `${place} ${name}`;
  return [
    { name: 'unused exports', value: unused.length, places: unused.map(place) },
    { name: 'exports without a doc comment', value: silent.length, places: silent.map(place) },
  ];
}

interface FoundExport {
  readonly place: string;
  readonly name: string;
  readonly isDocumented: boolean;
}

/** What a file declares and exports; names that it only passes on are not its own. */
function exportsOf({ path, text, comments, exports }: SourceFile): FoundExport[] {
  const docEnds = comments.filter(({ value }) => value.startsWith('*')).map(({ end }) => end);
  return exports.flatMap(({ start, entries }) =>
    entries
      .filter(({ moduleRequest }) => moduleRequest === null)
      .map(({ exportName }) => ({
        place: `${path}:${lineAt(text, start)}`,
        name: exportName.name ?? 'default',
        isDocumented: docEnds.some((end) => end <= start && /^\s*$/.test(text.slice(end, start))),
      })),
  );
}

function usedNames(everything: readonly SourceFile[]): (path: string, name: string) => boolean {
  const used = new Map<string, Set<string> | 'all'>();
  for (const { target, names } of everything.flatMap(({ imports }) => imports)) {
    const before = used.get(target);
    if (names === undefined || before === 'all') used.set(target, 'all');
    else used.set(target, new Set([...(before ?? []), ...names]));
  }
  return (path, name) => {
    const names = used.get(path);
    return names === 'all' || (names?.has(name) ?? false);
  };
}

/** The sources of what the package offers to others. */
function entryPoints(checkout: string): Set<string> {
  const { exports } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { readonly types: string }>;
  };
  const built = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : entry.types));
  return new Set(built.map((path) => path.replace(/^\.\/dist\/types\/(.*)\.d\.ts$/, 'src/$1.ts')));
}

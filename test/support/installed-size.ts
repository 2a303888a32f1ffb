import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The folders of the packages that npm installs beside the program where nobody develops it. */
export function dependencyFolders(root: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean }>;
  };
  const installed = Object.keys(packages).filter((path) => path && !packages[path]!.dev && !packages[path]!.optional);
  return installed.map((path) => join(root, path));
}

/** The bytes of the files of a package, without those of packages that are installed inside of it. */
export function bytesIn(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .map((entry) => join(folder, entry.name))
    .reduce((sum, path) => sum + (statSync(path).isDirectory() ? bytesIn(path) : statSync(path).size), 0);
}

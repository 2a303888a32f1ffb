import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** Folders of a project that are watched; more are left alone. */
const FOLDERS_MAX = 2_000;

/** Which files count, by their path below the root. */
type IsWatched = (path: string) => boolean;

/**
 * Tells of every file below a folder that changes. Each folder is watched by itself: many editors write a new file and put
 * it in the place of the old one, and a watch on the old one, as a recursive watch has it on Linux, sees nothing of that.
 */
export class FileWatch {
  readonly #root: string;
  readonly #isWatched: IsWatched;
  readonly #onChange: (path: string) => void;
  readonly #folders = new Map<string, FSWatcher>();

  constructor(root: string, isWatched: IsWatched, onChange: (path: string) => void) {
    this.#root = root;
    this.#isWatched = isWatched;
    this.#onChange = onChange;
    this.#add(root);
  }

  close(): void {
    for (const watcher of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #add(folder: string): void {
    if (this.#folders.has(folder) || this.#folders.size >= FOLDERS_MAX) return;
    const children = foldersIn(folder);
    if (!children) return;
    const watcher = watch(folder, (event, name) => {
      if (name !== null) this.#changed(event, join(folder, name));
    });
    // A folder that is deleted is no error: whatever was in it has changed, and is told of.
    watcher.on('error', () => this.#remove(folder));
    this.#folders.set(folder, watcher);
    for (const child of children) if (this.#isOfProject(child)) this.#add(child);
  }

  /** Stops watching a folder and all folders below it: once it is renamed, their watches belong to the new names. */
  #remove(folder: string): void {
    for (const [path, watcher] of this.#folders) {
      if (path !== folder && !path.startsWith(folder + sep)) continue;
      watcher.close();
      this.#folders.delete(path);
    }
  }

  #changed(event: string, path: string): void {
    if (!this.#isOfProject(path)) return;
    if (event === 'rename') {
      // It has come, gone or taken the place of another.
      this.#remove(path);
      this.#add(path);
    }
    this.#onChange(relative(this.#root, path));
  }

  #isOfProject(path: string): boolean {
    return this.#isWatched(relative(this.#root, path));
  }
}

/** The folders in a folder; undefined if it is none, or is gone. */
function foldersIn(path: string): string[] | undefined {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(path, name));
  } catch {
    return undefined;
  }
}

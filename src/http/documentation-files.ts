import { readdirSync, statSync } from 'node:fs';

const PAGE = /^(?:README\.md|docs\/[^/]+\.md|examples\/(?:.+\/)?README\.md)$/;
const PICTURE = /^docs\/.+\.(?:svg|png|jpg)$/;
/** Files of examples, without what somebody who tries them installs and hides there. */
const EXAMPLE = /^examples\/(?!(?:.*\/)?(?:node_modules|\.))/;

/**
 * The files of the repository that the documentation consists of: its pages, the README, pictures and examples. Each has
 * an address below `/docs/`. The set is fixed when it is made, so no path that somebody asks for leads out of it.
 */
export class DocumentationFiles {
  readonly #root: URL;
  /** Paths in the repository, by address. */
  readonly #paths: ReadonlyMap<string, string>;

  constructor(root: URL) {
    this.#root = root;
    const paths = ['README.md', ...filesBelow(root, 'docs'), ...filesBelow(root, 'examples')];
    const served = paths.filter((path) => isPage(path) || isPicture(path) || EXAMPLE.test(path));
    this.#paths = new Map(served.filter((path) => isFile(this.urlOf(path))).map((path) => [addressOf(path), path]));
  }

  /** The paths of the pages of `docs/`. */
  get pages(): readonly string[] {
    return [...this.#paths.values()].filter((path) => path.startsWith('docs/') && isPage(path));
  }

  /** The path in the repository of what has an address; undefined if nothing has it. */
  pathAt(address: string): string | undefined {
    return this.#paths.get(address.replace(/\.md$/, ''));
  }

  /** Where a file is. */
  urlOf(path: string): URL {
    return new URL(path, this.#root);
  }

  /** The address of a file, or of the README of a folder; undefined if it is not served. */
  addressOf(path: string): string | undefined {
    const candidates = [path, `${path.replace(/\/$/, '')}/README.md`];
    const found = candidates.find((candidate) => this.#paths.get(addressOf(candidate)) === candidate);
    return found && addressOf(found);
  }
}

/** Whether a file is rendered as a page. */
export function isPage(path: string): boolean {
  return PAGE.test(path);
}

/** Whether a file is a picture that pages may show. */
export function isPicture(path: string): boolean {
  return PICTURE.test(path);
}

/** Pages of `docs/` have short addresses, to which the console and the messages of the host lead. */
function addressOf(path: string): string {
  return path.replace(/^docs\//, '').replace(/\.md$/, '');
}

/** What is in a folder of the repository; nothing where the folder was not installed. */
function filesBelow(root: URL, folder: string): string[] {
  const url = new URL(`${folder}/`, root);
  if (statSync(url, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(url, { recursive: true, encoding: 'utf8' }).map(
    (path) => `${folder}/${path.replaceAll('\\', '/')}`,
  );
}

function isFile(url: URL): boolean {
  return statSync(url, { throwIfNoEntry: false })?.isFile() === true;
}

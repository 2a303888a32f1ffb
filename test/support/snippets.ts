import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../', import.meta.url);

/** A fenced block of a page. */
export interface Snippet {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** Why it cannot be run, if the page says so in a comment before it. */
  readonly isNotRun: string | undefined;
}

const BLOCK = /(?:<!-- not run: ([^>]+) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm;

/** Every fenced block of the README and of the pages in `docs/`, in the order of the pages. */
export function snippets(): Snippet[] {
  const pages = ['README.md', ...readdirSync(new URL('docs/', ROOT)).map((name) => `docs/${name}`)];
  return pages
    .filter((page) => page.endsWith('.md'))
    .flatMap((page) => {
      const text = readFileSync(fileURLToPath(new URL(page, ROOT)), 'utf8');
      return [...text.matchAll(BLOCK)].map(([, isNotRun, language = '', body = ''], index) => ({
        page,
        line: text.slice(0, [...text.matchAll(BLOCK)][index]!.index).split('\n').length,
        language,
        text: body,
        isNotRun,
      }));
    });
}

/** What a page has of one language. */
export interface PageOf {
  readonly page: string;
  /** The page, as the name of a file. */
  readonly name: string;
  /** Its blocks, one after the other. */
  readonly text: string;
}

/** The pages that have blocks of a language among these. */
export function pagesWith(language: string, among: readonly Snippet[]): PageOf[] {
  const byPage = Map.groupBy(
    among.filter((snippet) => snippet.language === language),
    ({ page }) => page,
  );
  return [...byPage].map(([page, blocks]) => ({
    page,
    name: page.replaceAll(/\W+/g, '-'),
    text: blocks.map(({ text }) => text).join('\n'),
  }));
}

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

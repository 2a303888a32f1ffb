import { readdirSync, readFileSync } from 'node:fs';
import { Marked } from 'marked';
import { refuse } from '../protocol/errors.ts';
import { envelopeOf, JSON_TYPE } from './answers.ts';
import type { PublicPage } from './pages.ts';

/** The pages are text and one style sheet: nothing in them can run, send or load anything. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};
const HTML = 'text/html; charset=utf-8';
const REPOSITORY_FILE = /^\.\.\/|^\w+\/|^adr/;

/** Serves the Markdown pages of a folder, rendered once at start. */
export function documentationPages(folder: URL): PublicPage[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'));
  const pages = new Map(names.map((name) => [name.slice(0, -3), readFileSync(new URL(name, folder), 'utf8')]));
  const rendered = new Map([...pages].map(([name, text]) => [name, documentOf(titleOf(text) ?? name, render(text))]));
  const index = documentOf('Documentation', render(`# Documentation\n\n${indexOf(pages)}`));
  return [
    {
      path: '/docs',
      answer: () => ({ status: 302, type: HTML, body: undefined, headers: { ...HEADERS, Location: '/docs/' } }),
    },
    { path: '/docs/', answer: () => ({ type: HTML, body: index, headers: HEADERS }) },
    {
      path: '/docs/*',
      answer: ({ url }) => {
        const name = new URL(url, 'http://host').pathname.slice('/docs/'.length).replace(/\.md$/, '');
        const body = rendered.get(name);
        if (body !== undefined) return { type: HTML, body, headers: HEADERS };
        return {
          status: 404,
          type: JSON_TYPE,
          body: JSON.stringify(envelopeOf(refuse('not_found', 'There is no such page.'))),
        };
      },
    },
  ];
}

/** Renders Markdown to HTML. HTML in the text is shown as text, and links lead to the web or to other pages only. */
export function render(text: string): string {
  const marked = new Marked({
    renderer: {
      html: ({ text: raw }) => (raw.trim().startsWith('<!--') ? '' : escaped(raw)),
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens);
        const target = targetOf(href);
        return target === undefined ? words : `<a href="${escaped(target)}">${words}</a>`;
      },
      image: ({ text: words }) => escaped(words),
      heading({ tokens, depth, text: words }) {
        return `<h${depth} id="${escaped(anchorOf(words))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
    },
  });
  return marked.parse(text, { async: false });
}

/** Where a link leads on the host; undefined for a file that the host does not serve, or a scheme that can run code. */
function targetOf(href: string): string | undefined {
  if (/^https?:\/\//i.test(href) || href.startsWith('#')) return href;
  if (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith('/') || REPOSITORY_FILE.test(href)) return undefined;
  const [page = '', anchor] = href.split('#');
  return `/docs/${page.replace(/\.md$/, '')}${anchor === undefined ? '' : `#${anchor}`}`;
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function indexOf(pages: ReadonlyMap<string, string>): string {
  const first = ['ten-minutes', 'workflows', 'nodes', 'cli', 'client'];
  const names = [
    ...first.filter((name) => pages.has(name)),
    ...[...pages.keys()].filter((name) => !first.includes(name)).sort(),
  ];
  return names.map((name) => `- [${titleOf(pages.get(name)!) ?? name}](${name}.md)`).join('\n');
}

function titleOf(text: string): string | undefined {
  return /^# (.+)$/m.exec(text)?.[1];
}

function documentOf(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Capstan</title>
<link rel="stylesheet" href="/console/reference/docs.css">
</head>
<body>
<nav aria-label="Documentation"><a href="/">Capstan</a> <a href="/docs/">Documentation</a></nav>
<main>
${body}</main>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

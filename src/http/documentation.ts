import { readdirSync, readFileSync } from 'node:fs';
import { Marked } from 'marked';
import { refuse } from '../protocol/errors.ts';
import { envelopeOf, JSON_TYPE } from './answers.ts';
import { HTML, redirectTo } from './files.ts';
import type { PublicPage } from './pages.ts';

/** The pages are text and one style sheet: nothing in them can run, send or load anything. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};
/** The tasks that the README names, each with its pages; what is in none of them comes last. */
const TASKS: readonly (readonly [task: string, names: readonly string[]])[] = [
  ['Begin', ['ten-minutes']],
  ['Look up a word that only we use', ['glossary']],
  ['Use the console, the command line or the TypeScript client', ['console', 'cli', 'client']],
  [
    'Build workflows',
    [
      'workflows',
      'nodes',
      'your-first-node',
      'durable-effects',
      'projects',
      'testing',
      'workers',
      'build-api',
      'coming-from',
      'models',
      'prompts',
      'packs',
    ],
  ],
  ['Build agents', ['agents', 'memory', 'mcp']],
  ['Ask people, and get their feedback', ['interrupts', 'feedback']],
  ['Start runs automatically', ['triggers', 'schedules', 'continuation']],
  ['Work towards a goal', ['goals', 'verifiers']],
  ['Review what was learned', ['first-proposal', 'proposals', 'synthesis']],
  ['Replay, compare and debug runs', ['forks', 'inspecting']],
  ['Receive events', ['webhooks']],
  [
    'Operate a host',
    [
      'operating',
      'scaling',
      'performance',
      'high-availability',
      'faults',
      'telemetry',
      'retention',
      'authorization',
      'audit',
      'threat-model',
    ],
  ],
];
const REPOSITORY_FILE = /^\.\.\/|^\w+\/|^adr/;

/**
 * Serves the Markdown pages of a folder. They are read and rendered when somebody asks for the first one. All links are
 * relative, because a proxy may publish the host below a path.
 */
export function documentationPages(folder: URL): PublicPage[] {
  let rendered: ReadonlyMap<string, string> | undefined;
  const pageOf = (name: string): string | undefined => {
    rendered ??= renderAll(folder);
    return rendered.get(name);
  };
  return [
    { path: '/docs', answer: () => redirectTo('docs/') },
    {
      path: '/docs/*',
      answer: ({ url }) => {
        const body = pageOf(new URL(url, 'http://host').pathname.slice('/docs/'.length).replace(/\.md$/, ''));
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

/** Every page by its name; the index has none. */
function renderAll(folder: URL): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'));
  const pages = new Map(names.map((name) => [name.slice(0, -3), readFileSync(new URL(name, folder), 'utf8')]));
  return new Map([
    ['', documentOf('Documentation', render(`# Documentation\n\n${indexOf(pages)}`))],
    ...[...pages].map(([name, text]): [string, string] => [name, documentOf(titleOf(text) ?? name, render(text))]),
  ]);
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
  return `${page.replace(/\.md$/, '')}${anchor === undefined ? '' : `#${anchor}`}`;
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The pages by what a reader wants to do. */
function indexOf(pages: ReadonlyMap<string, string>): string {
  const listed = new Set(TASKS.flatMap(([, names]) => names));
  const rest = [...pages.keys()].filter((name) => !listed.has(name)).sort();
  return [...TASKS, ['More', rest] as const]
    .map(([task, names]) => [task, names.filter((name) => pages.has(name))] as const)
    .filter(([, names]) => names.length > 0)
    .map(([task, names]) => `## ${task}\n\n${names.map((name) => linkTo(name, pages.get(name)!)).join('\n')}`)
    .join('\n\n');
}

function linkTo(name: string, text: string): string {
  return `- [${titleOf(text) ?? name}](${name}.md)`;
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
<link rel="stylesheet" href="../console/reference/docs.css">
</head>
<body>
<nav aria-label="Documentation"><a href="../">Capstan</a> <a href="../docs/">Documentation</a></nav>
<main>
${body}</main>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

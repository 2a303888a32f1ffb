import { readFileSync } from 'node:fs';
import { Marked } from 'marked';
import { refuse } from '../protocol/errors.ts';
import { once } from '../protocol/format/once.ts';
import { envelopeOf, JSON_TYPE } from './answers.ts';
import { DocumentationFiles, isPage, isPicture } from './documentation-files.ts';
import { HTML, redirectTo, typeOf } from './files.ts';
import type { PageContent, PublicPage } from './pages.ts';

/** The pages are text, one style sheet and pictures of ours: nothing in them can run, send or load anything else. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};
/** A picture may bring its own style; whoever opens one by itself has a document that can do nothing. */
const FILE_HEADERS = {
  ...HEADERS,
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
};
const TEXT = 'text/plain; charset=utf-8';
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
/** Serves the documentation of a repository. Nothing is read before somebody asks for it, and everything once. */
export function documentationPages(root: URL): PublicPage[] {
  const files = once(() => new DocumentationFiles(root));
  const made = new Map<string, PageContent>();
  const contentAt = (address: string): PageContent | undefined => {
    const path = address === '' ? INDEX : files().pathAt(address);
    if (path !== undefined && !made.has(path)) made.set(path, contentOf(files(), path));
    return path === undefined ? undefined : made.get(path);
  };
  return [
    { path: '/docs', answer: () => redirectTo('docs/') },
    {
      path: '/docs/*',
      answer: ({ url }) => contentAt(new URL(url, 'http://host').pathname.slice('/docs/'.length)) ?? NO_SUCH_PAGE,
    },
  ];
}

/** Stands for the list of all pages, which no file has. */
const INDEX = 'docs/';
const NO_SUCH_PAGE: PageContent = {
  status: 404,
  type: JSON_TYPE,
  body: JSON.stringify(envelopeOf(refuse('not_found', 'There is no such page.'))),
};

/** A page, or the bytes of a picture or an example. */
function contentOf(files: DocumentationFiles, path: string): PageContent {
  if (path !== INDEX && !isPage(path)) {
    const type = isPicture(path) ? typeOf(path) : TEXT;
    return { type, body: readFileSync(files.urlOf(path)), headers: FILE_HEADERS };
  }
  const text = path === INDEX ? `# Documentation\n\n${indexOf(files)}` : readFileSync(files.urlOf(path), 'utf8');
  const depth = (path === INDEX ? '' : files.addressOf(path)!).split('/').length;
  const document = documentOf({ title: titleOf(text) ?? path, body: render(text, { path, files }), depth });
  return { type: HTML, body: document, headers: HEADERS };
}

/** A page in the repository, and what its links may lead to. */
interface Place {
  readonly path: string;
  readonly files: Pick<DocumentationFiles, 'addressOf'>;
}

/** Renders Markdown to HTML. HTML in the text is shown as text, and links lead to the web or to what is served only. */
export function render(text: string, place: Place): string {
  const marked = new Marked({
    renderer: {
      html: ({ text: raw }) => (raw.trim().startsWith('<!--') ? '' : escaped(raw)),
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens);
        if (/^https?:\/\//i.test(href) || href.startsWith('#')) return `<a href="${escaped(href)}">${words}</a>`;
        const { path, target } = linked(href, place);
        if (target !== undefined) return `<a href="${escaped(target)}">${words}</a>`;
        return path === undefined ? words : `${words} (<code>${escaped(path)}</code> in the repository)`;
      },
      image({ href, text: words }) {
        const { path, target } = linked(href, place);
        if (target === undefined || !isPicture(path!)) return escaped(words);
        return `<img src="${escaped(target)}" alt="${escaped(words)}">`;
      },
      heading({ tokens, depth, text: words }) {
        return `<h${depth} id="${escaped(anchorOf(words))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
    },
  });
  return marked.parse(text, { async: false });
}

/**
 * The file that a link leads to, and its address as seen from the page: relative, because a proxy may publish the host
 * below a path. Neither for a link out of the repository, which may have a scheme that runs code.
 */
function linked(href: string, { path: from, files }: Place): { readonly path?: string; readonly target?: string } {
  if (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith('/')) return {};
  const resolved = URL.parse(href, `${REPOSITORY}${from}`);
  if (!resolved) return {};
  const path = resolved.pathname.slice(1);
  const address = files.addressOf(path);
  if (address === undefined) return { path };
  const up = '../'.repeat((files.addressOf(from) ?? '').split('/').length - 1);
  return { path, target: `${up}${address}${resolved.hash}` };
}

/** Only for the sake of resolving paths: the repository may be published anywhere. */
const REPOSITORY = 'https://repository.invalid/';

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The pages by what a reader wants to do. */
function indexOf(files: DocumentationFiles): string {
  const pages = new Map(files.pages.map((path) => [files.addressOf(path)!, readFileSync(files.urlOf(path), 'utf8')]));
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

interface PageParts {
  readonly title: string;
  readonly body: string;
  /** How many steps it is up to the root of the host. */
  readonly depth: number;
}

function documentOf({ title, body, depth }: PageParts): string {
  const root = '../'.repeat(depth);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Capstan</title>
<link rel="stylesheet" href="${root}console/reference/docs.css">
</head>
<body>
<nav aria-label="Documentation"><a href="${root}">Capstan</a> <a href="${root}docs/">Documentation</a></nav>
<main>
${body}</main>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

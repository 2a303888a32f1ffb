import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { sha256Hex } from '../system/digest.ts';
import type { PageContent, PublicPage } from './pages.ts';

/** The page runs our own scripts and connects to this host only, so injected text cannot run or send anything. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Referrer-Policy': 'no-referrer',
  // Browsers revalidate cached files each time, so an upgrade never mixes old and new ones.
  'Cache-Control': 'no-cache',
};

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

const ASSETS: readonly [name: string, type: string][] = [
  ['page.css', CSS],
  ['docs.css', CSS],
  ['page.js', SCRIPT],
  ['dom.js', SCRIPT],
  ['lines.js', SCRIPT],
  ['try-it.js', SCRIPT],
  ['reference.js', SCRIPT],
  ['schema-view.js', SCRIPT],
];

/** The pages for people who open the host in a browser. */
export function frontDoorPages(): PublicPage[] {
  return [
    { path: '/', answer: toConsole },
    { path: '/console', answer: toConsole },
    ...ASSETS.map(([name, type]) => ({ path: `/console/${name}`, answer: serve(name, type) })),
    // The console routes in the browser, so every path below is the same page.
    { path: '/console/*', answer: serve('index.html', HTML) },
  ];
}

function toConsole(): PageContent {
  return { status: 302, type: HTML, body: undefined, headers: { ...HEADERS, Location: '/console/' } };
}

/** Serves a file that is read once, at start. */
function serve(name: string, type: string): (request: FastifyRequest) => PageContent {
  const body = readFileSync(new URL(`front-door/${name}`, import.meta.url), 'utf8');
  const etag = `"${sha256Hex(body).slice(0, 32)}"`;
  const headers = { ...HEADERS, ETag: etag };
  return (request) =>
    isFresh(request, etag) ? { status: 304, type, body: undefined, headers } : { type, body, headers };
}

function isFresh({ headers }: FastifyRequest, etag: string): boolean {
  return headers['if-none-match']?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag) ?? false;
}

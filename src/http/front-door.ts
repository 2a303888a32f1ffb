import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { sha256Hex } from '../system/digest.ts';
import type { PageContent, PublicPage } from './pages.ts';

/** The page runs our own scripts and speaks to this host alone; text that reaches it can therefore do no harm. */
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
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  // A browser keeps the files but asks each time: after an upgrade nobody sees half of the old page.
  'Cache-Control': 'no-cache',
};

const HTML = 'text/html; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

const ASSETS: readonly [name: string, type: string][] = [
  ['page.css', CSS],
  ['page.js', SCRIPT],
  ['dom.js', SCRIPT],
  ['lines.js', SCRIPT],
  ['try-it.js', SCRIPT],
  ['reference.js', SCRIPT],
  ['schema-view.js', SCRIPT],
];

/** What a person sees who opens the host in a browser. */
export function frontDoorPages(): PublicPage[] {
  return [
    { path: '/', answer: toConsole },
    { path: '/console', answer: toConsole },
    ...ASSETS.map(([name, type]) => ({ path: `/console/${name}`, answer: serve(name, type) })),
    // Addresses below belong to the console, whose routes are decided in the browser: each is the same page.
    { path: '/console/*', answer: serve('index.html', HTML) },
  ];
}

function toConsole(): PageContent {
  return { status: 302, type: HTML, body: undefined, headers: { ...HEADERS, Location: '/console/' } };
}

/** The file is read once, so what is served is what the host was started with. */
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

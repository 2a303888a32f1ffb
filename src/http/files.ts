import type { FastifyRequest } from 'fastify';
import type { PageContent } from './pages.ts';

/** What pages may do: run our own scripts and connect to this host, so injected text cannot run or send anything. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The headers of everything that is served to browsers. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Referrer-Policy': 'no-referrer',
  // Browsers revalidate cached files each time, so an upgrade never mixes old and new ones.
  'Cache-Control': 'no-cache',
};

/** The media type of pages. */
export const HTML = 'text/html; charset=utf-8';

const TYPES: Readonly<Record<string, string>> = {
  html: HTML,
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpg: 'image/jpeg',
  woff2: 'font/woff2',
  txt: 'text/plain; charset=utf-8',
};

/** The media type of a file, by its name. */
export function typeOf(name: string): string {
  return TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
}

/** Sends the browser to another page; the address is relative, because a proxy may publish the host below a path. */
export function redirectTo(address: string): PageContent {
  return { status: 302, type: HTML, body: undefined, headers: { ...PAGE_HEADERS, Location: address } };
}

/** Sends a body, or nothing if the browser has it already. */
export function freshOr(
  { headers: asked }: Pick<FastifyRequest, 'headers'>,
  etag: string,
  content: Omit<PageContent, 'headers' | 'status'>,
): PageContent {
  const headers = { ...PAGE_HEADERS, ETag: etag };
  const isFresh = asked['if-none-match']?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
  return isFresh ? { ...content, status: 304, body: undefined, headers } : { ...content, headers };
}

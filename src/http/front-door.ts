import { readFileSync } from 'node:fs';
import { sha256Hex } from '../system/digest.ts';
import { freshOr, redirectTo, typeOf } from './files.ts';
import type { PublicPage } from './pages.ts';

const ASSETS: readonly string[] = [
  'page.css',
  'docs.css',
  'page.js',
  'api.js',
  'dom.js',
  'lines.js',
  'try-it.js',
  'reference.js',
  'schema-view.js',
];

/** The front page with a first run, and the API reference, for people who want to program against the host. */
export function frontDoorPages(): PublicPage[] {
  return [
    { path: '/console/reference', answer: () => redirectTo('reference/') },
    { path: '/console/reference/', answer: serve('index.html') },
    { path: '/console/reference/api', answer: serve('api.html') },
    ...ASSETS.map((name) => ({ path: `/console/reference/${name}`, answer: serve(name) })),
  ];
}

/** Serves a file that is read once, at start. */
function serve(name: string): PublicPage['answer'] {
  const body = readFileSync(new URL(`front-door/${name}`, import.meta.url), 'utf8');
  const etag = `"${sha256Hex(body).slice(0, 32)}"`;
  return (request) => freshOr(request, etag, { type: typeOf(name), body });
}

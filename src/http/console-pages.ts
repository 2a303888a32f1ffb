import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { sha256Hex } from '../system/digest.ts';
import { freshOr, HTML, PAGE_HEADERS, redirectTo, typeOf } from './files.ts';
import type { PageContent, PublicPage } from './pages.ts';

const ROOT = '/console/';
const COMPRESSED = '.br';
/** Names of assets contain a hash of what is in them. */
const FOREVER = { ...PAGE_HEADERS, 'Cache-Control': 'public, max-age=31536000, immutable' };
const NOT_BUILT = '<!doctype html><title>Capstan</title><p>The console is not built. Run: npm run build:console</p>';

/** The console: its built files, and its page under every path, because it finds its way in the browser. */
export function consolePages(folder: URL): PublicPage[] {
  const index = new URL('index.html', folder);
  const page = existsSync(index) ? readFileSync(index, 'utf8') : NOT_BUILT;
  return [
    { path: '/', answer: () => redirectTo('console/') },
    { path: '/console', answer: () => redirectTo('console/') },
    ...assetPages(new URL('assets/', folder)),
    { path: `${ROOT}*`, answer: (request) => pageBelow(page, request) },
  ];
}

function assetPages(folder: URL): PublicPage[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => !name.endsWith(COMPRESSED))
    .map((name) => {
      const body = readFileSync(new URL(name, folder));
      const small = names.includes(name + COMPRESSED) ? readFileSync(new URL(name + COMPRESSED, folder)) : undefined;
      return { path: `${ROOT}assets/${name}`, answer: (request) => asset(name, body, small, request) };
    });
}

function asset(name: string, body: Buffer, small: Buffer | undefined, { headers }: FastifyRequest): PageContent {
  const type = typeOf(name);
  const isAsked = /\bbr\b/.test(String(headers['accept-encoding'] ?? ''));
  if (!small) return { type, body, headers: FOREVER };
  if (!isAsked) return { type, body, headers: { ...FOREVER, Vary: 'Accept-Encoding' } };
  return { type, body: small, headers: { ...FOREVER, Vary: 'Accept-Encoding', 'Content-Encoding': 'br' } };
}

/**
 * The page with the way from the asked path back to the console's root: a proxy may publish the host below a path that
 * the host does not know, so every address in the page is relative.
 */
function pageBelow(page: string, request: FastifyRequest): PageContent {
  const [path = ROOT] = request.url.split('?');
  const depth = path.slice(ROOT.length).split('/').length - 1;
  const body = page.replace('<base href="./" />', `<base href="${depth === 0 ? './' : '../'.repeat(depth)}" />`);
  return freshOr(request, `"${sha256Hex(body).slice(0, 32)}"`, { type: HTML, body });
}

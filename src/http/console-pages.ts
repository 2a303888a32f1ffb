import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { sha256Hex } from '../system/digest.ts';
import { freshOr, HTML, PAGE_HEADERS, redirectTo, typeOf } from './files.ts';
import type { PageContent, PublicPage } from './pages.ts';

const ROOT = '/console/';
const ASSETS = 'assets/';
const COMPRESSED = '.br';
/** Names of assets contain a hash of what is in them. */
const FOREVER = { ...PAGE_HEADERS, 'Cache-Control': 'public, max-age=31536000, immutable' };
const NOT_BUILT = '<!doctype html><title>Capstan</title><p>The console is not built. Run: npm run build:console</p>';

/** The console: its built files, and its page under every path, because it finds its way in the browser. */
export function consolePages(folder: URL): PublicPage[] {
  const index = new URL('index.html', folder);
  const page = existsSync(index) ? readFileSync(index, 'utf8') : NOT_BUILT;
  const asset = assetsIn(new URL(ASSETS, folder));
  return [
    { path: '/', answer: () => redirectTo('console/') },
    { path: '/console', answer: () => redirectTo('console/') },
    { path: `${ROOT}*`, answer: (request) => asset(assetName(request), request) ?? pageBelow(page, request) },
  ];
}

/** The name of the built file that is asked for; empty for a path of the page. */
function assetName({ url }: FastifyRequest): string {
  const [path = ''] = url.split('?');
  return path.startsWith(ROOT + ASSETS) ? path.slice((ROOT + ASSETS).length) : '';
}

/** Answers with the built file of that name, which is read when somebody first asks for it. */
function assetsIn(folder: URL): (name: string, request: FastifyRequest) => PageContent | undefined {
  const names = new Set(existsSync(folder) ? readdirSync(folder) : []);
  const read = new Map<string, Buffer>();
  const bytesOf = (name: string): Buffer => {
    const bytes = read.get(name) ?? readFileSync(new URL(name, folder));
    read.set(name, bytes);
    return bytes;
  };
  return (name, { headers }) => {
    if (!names.has(name) || name.endsWith(COMPRESSED)) return undefined;
    const type = typeOf(name);
    if (!names.has(name + COMPRESSED)) return { type, body: bytesOf(name), headers: FOREVER };
    const varied = { ...FOREVER, Vary: 'Accept-Encoding' };
    const isAsked = /\bbr\b/.test(String(headers['accept-encoding'] ?? ''));
    if (!isAsked) return { type, body: bytesOf(name), headers: varied };
    return { type, body: bytesOf(name + COMPRESSED), headers: { ...varied, 'Content-Encoding': 'br' } };
  };
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

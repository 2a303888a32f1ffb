import { type Client, createClient, platform } from '../../src/client/index.ts';
import { watchedFetch } from './connection.ts';

/** Where the console is: the page says so, because a proxy may publish the host below a path. */
export const consoleRoot = new URL(document.baseURI);
/** Where the host is. */
export const hostUrl = new URL('..', consoleRoot).href;

/** Whether the page is being left; one that the browser keeps may come back. */
let isParting = false;
addEventListener('pagehide', () => {
  isParting = true;
});
addEventListener('pageshow', () => {
  isParting = false;
});

/** The client that every page uses; the session cookie says who is calling. */
export const client: Client = createClient({
  url: hostUrl,
  isSession: true,
  machine: {
    ...platform,
    // What is sent as the page is left must not end with it. Otherwise bodies may be larger than this permits.
    fetch: (url, request) => watchedFetch(url, isParting ? { ...request, keepalive: true } : request),
  },
});

/** The same for what a page says as it is left: the browser sends it even though the page is gone. */
export const partingClient: Client = createClient({
  url: hostUrl,
  isSession: true,
  retry: { attempts: 1 },
  machine: { ...platform, fetch: (url, init) => fetch(url, { ...init, keepalive: true }) },
});

/** Signs in: the key is sent once, and then only the browser has the cookie. */
export async function signIn(key: string): Promise<void> {
  await createClient({ url: hostUrl, key, retry: { attempts: 1 } }).createConsoleSession();
}

/** Where a sign-in at the identity provider begins: the host leads the browser there and back. */
export function beginSignInUrl(next: string | undefined): string {
  const url = new URL('v1/host/capstan/console/sign-in', hostUrl);
  if (next !== undefined) url.searchParams.set('next', next.replace(/^\/+/, ''));
  return url.href;
}

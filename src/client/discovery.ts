import { valueAt } from '../protocol/format/json.ts';
import { NotProvidedError } from './errors.ts';

/** The document at `/.well-known/openwop`: what a host supports. */
export type DiscoveryDocument = Readonly<Record<string, unknown>>;

/** The prefix of the routes that only Capstan hosts have. */
const VENDOR_PATH = '/v1/host/capstan/';
const VENDOR = 'capstan';

/** Families whose routes are not in the protocol's API description yet, and where hosts serve them until then. */
const UNSETTLED = ['/v1/proposals', '/v1/goals'];
const SAMPLE_PREFIX = '/v1/host/sample';

/** Whether the host is a Capstan host, which has routes of its own. */
export function isCapstan({ implementation }: DiscoveryDocument): boolean {
  return ((implementation ?? {}) as { name?: unknown }).name === VENDOR;
}

/**
 * Where a host serves a path: proposals and goals are at `/v1` on Capstan hosts and where `paths` of the document says
 * so, and under the prefix for host surfaces elsewhere.
 */
export function addressOf(document: DiscoveryDocument, path: string): string {
  const family = UNSETTLED.find((each) => path === each || path.startsWith(`${each}/`));
  if (family === undefined || isCapstan(document)) return path;
  const listed = Object.keys((document.paths ?? {}) as object);
  return listed.some((each) => each.startsWith(family)) ? path : path.replace(/^\/v1/, SAMPLE_PREFIX);
}

/** Throws NotProvidedError unless the discovery document shows support, so that unsupported calls fail early. */
export function requireSupport(document: DiscoveryDocument, path: string, needs: string | undefined): void {
  if (path.startsWith(VENDOR_PATH) && !isCapstan(document)) throw new NotProvidedError(`${VENDOR_PATH}…`);
  if (needs !== undefined && !isShown(document, needs)) throw new NotProvidedError(needs);
}

/** Returns true when the document shows a capability. Older hosts list them under `capabilities`, not at the root. */
export function isShown(document: DiscoveryDocument, path: string): boolean {
  return [document, document.capabilities].some((root) => isEnabled(valueAt(root, path)));
}

function isEnabled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

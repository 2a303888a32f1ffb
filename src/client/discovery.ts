import { valueAt } from '../protocol/format/json.ts';
import { NotProvidedError } from './errors.ts';

/** The document at `/.well-known/openwop`: what a host supports. */
export type DiscoveryDocument = Readonly<Record<string, unknown>>;

/** The prefix of the routes that only Capstan hosts have. */
const VENDOR_PATH = '/v1/host/capstan/';
const VENDOR = 'capstan';

/** Throws NotProvidedError unless the discovery document shows support, so that unsupported calls fail early. */
export function requireSupport(document: DiscoveryDocument, path: string, needs: string | undefined): void {
  const { name } = (document.implementation ?? {}) as { name?: unknown };
  if (path.startsWith(VENDOR_PATH) && name !== VENDOR) throw new NotProvidedError(`${VENDOR_PATH}…`);
  if (needs !== undefined && !isShown(document, needs)) throw new NotProvidedError(needs);
}

/** Returns true when the document shows a capability. Older hosts list them under `capabilities`, not at the root. */
export function isShown(document: DiscoveryDocument, path: string): boolean {
  return [document, document.capabilities].some((root) => isEnabled(valueAt(root, path)));
}

function isEnabled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

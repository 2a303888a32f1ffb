import { valueAt } from '../protocol/format/json.ts';
import { NotProvidedError } from './errors.ts';

/** What a host says of itself to everybody. */
export type DiscoveryDocument = Readonly<Record<string, unknown>>;

/** Routes that only this implementation has. */
const VENDOR_PATH = '/v1/host/capstan/';
const VENDOR = 'capstan';

/** Throws unless the document shows what an operation takes: what is not shown is not asked for. */
export function checkProvided(document: DiscoveryDocument, path: string, needs: string | undefined): void {
  const { name } = (document.implementation ?? {}) as { name?: unknown };
  if (path.startsWith(VENDOR_PATH) && name !== VENDOR) throw new NotProvidedError(`${VENDOR_PATH}…`);
  if (needs !== undefined && !isShown(document, needs)) throw new NotProvidedError(needs);
}

/** Families stand at the root; older hosts have them under `capabilities`. */
export function isShown(document: DiscoveryDocument, path: string): boolean {
  return [document, document.capabilities].some((root) => isOn(valueAt(root, path)));
}

function isOn(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false;
}

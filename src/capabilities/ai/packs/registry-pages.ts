import { open, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { type Egress, EgressFailure, type EgressResponse } from '../../../system/egress.ts';

/** What lies at an address of a registry. */
export type ReadPage = (url: string, maxBytes: number) => Promise<Buffer | Refusal>;

/** What requests call the registry that is a folder of the operator's. */
export const FOLDER = 'folder';

const TIMEOUT_MS = 10_000;

export const NO_PAGE = refuse(
  'pack_version_not_found',
  'The registry has no such version of the pack, or took it back.',
);

export function unreachable(message: string): Refusal {
  return refuse('pack_registry_unreachable', message);
}

/** Pages of a registry that is asked over the network. */
export function pagesOver(egress: Egress, signal: AbortSignal): ReadPage {
  return async (url, maxBytes) => {
    let answer: EgressResponse;
    try {
      answer = await egress.send({ url, timeoutMs: TIMEOUT_MS, maxBytes, signal });
    } catch (error) {
      if (!(error instanceof EgressFailure)) throw error;
      if (error.reason === 'refused') return refuse('validation_error', error.message, { field: 'registry' });
      return unreachable(error.message);
    }
    if (answer.status === 200) return answer.body;
    return answer.status === 404 ? NO_PAGE : unreachable(`The registry answered with ${answer.status}.`);
  };
}

/** Pages of a registry that is a folder, each where its path says; that of a folder in it is its `index.json`. */
export function pagesIn(folder: string | undefined): ReadPage {
  return async (url, maxBytes) => {
    if (folder === undefined)
      return refuse('validation_error', 'This host has no folder of packs.', { field: 'registry' });
    if (!url.startsWith(`${FOLDER}/`)) return unreachable('A folder of packs has everything in itself.');
    const file = await fileAt(folder, url.slice(FOLDER.length + 1));
    return file === undefined ? NO_PAGE : bytesOf(file, maxBytes);
  };
}

/** Nothing where there is no such file, or a link leads out of the folder. */
async function fileAt(folder: string, path: string): Promise<string | undefined> {
  try {
    const [root, found] = await Promise.all([realpath(folder), realpath(join(folder, decodeURIComponent(path)))]);
    if (!found.startsWith(root + sep)) return undefined;
    return (await stat(found)).isDirectory() ? await fileAt(found, 'index.json') : found;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/** There is nothing at a path that leads nowhere, and nothing at one that cannot be. */
function isAbsence(error: unknown): boolean {
  const codes = ['ENOENT', 'ENOTDIR', 'ERR_INVALID_ARG_VALUE'];
  return error instanceof URIError || (error instanceof Error && 'code' in error && codes.includes(String(error.code)));
}

async function bytesOf(file: string, maxBytes: number): Promise<Buffer | Refusal> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    return size > maxBytes
      ? unreachable(`What the registry has there is larger than ${maxBytes} bytes.`)
      : await handle.readFile();
  } finally {
    await handle.close();
  }
}

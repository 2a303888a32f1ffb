import { open, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { type Egress, EgressFailure, type EgressResponse } from '../../../system/egress.ts';

/** Reads a document of a registry. */
export type ReadPage = (url: string, maxBytes: number) => Promise<Buffer | Refusal>;

/** Name that requests use for the registry in the operator's folder. */
export const FOLDER = 'folder';

const TIMEOUT_MS = 10_000;

/** The refusal for a version that a registry does not have. */
export const NO_PAGE = refuse(
  'pack_version_not_found',
  'The registry does not have this version of the pack, or has yanked it.',
);

/** The refusal for a registry that could not be read. */
export function unreachable(message: string): Refusal {
  return refuse('pack_registry_unreachable', message);
}

/** Reads a registry over the network. */
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

/** Reads a registry in a folder: each document is the file at its path, that of a subfolder its `index.json`. */
export function pagesIn(folder: string | undefined): ReadPage {
  return async (url, maxBytes) => {
    if (folder === undefined)
      return refuse(
        'validation_error',
        'This host has no pack folder. Set CAPSTAN_PACKS, or name a registry by its URL.',
        { field: 'registry' },
      );
    if (!url.startsWith(`${FOLDER}/`))
      return unreachable('The registry in the pack folder refers to a URL outside it.');
    const file = await fileAt(folder, url.slice(FOLDER.length + 1));
    return file === undefined ? NO_PAGE : bytesOf(file, maxBytes);
  };
}

/** The file at a path; undefined when there is none, or a link leads out of the folder. */
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

/** Whether the error means that there is no file: the path does not exist or is not valid. */
function isAbsence(error: unknown): boolean {
  const codes = ['ENOENT', 'ENOTDIR', 'ERR_INVALID_ARG_VALUE'];
  return error instanceof URIError || (error instanceof Error && 'code' in error && codes.includes(String(error.code)));
}

async function bytesOf(file: string, maxBytes: number): Promise<Buffer | Refusal> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    return size > maxBytes
      ? unreachable(`A document of the registry is larger than ${maxBytes} bytes.`)
      : await handle.readFile();
  } finally {
    await handle.close();
  }
}

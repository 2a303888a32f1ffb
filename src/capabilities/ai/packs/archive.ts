import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { PACK_FILE_MAX } from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { PackFiles } from './door.ts';

const UNPACKED_MAX = 50_000_000;
const BLOCK = 512;
const NAME = { at: 0, length: 100 };
const SIZE = { at: 124, length: 12 };
const TYPE_AT = 156;
const PREFIX = { at: 345, length: 155 };
/** Type flags of regular files; old programs write the second. */
const FILE_TYPES: readonly string[] = ['0', '\0'];

/** The regular files of a gzipped tar archive, by path. Of two with the same path the first counts. */
export async function filesIn(archive: Uint8Array): Promise<ReadonlyMap<string, Buffer> | Refusal> {
  let tar: Buffer;
  try {
    tar = await promisify(gunzip)(archive, { maxOutputLength: UNPACKED_MAX });
  } catch {
    return refuse('tarball_gunzip_failed', `The archive is not gzip, or unpacks to more than ${UNPACKED_MAX} bytes.`);
  }
  const files = new Map<string, Buffer>();
  for (let at = 0; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const size = sizeOf(header);
    if (size === undefined || at + BLOCK + size > tar.length) {
      return refuse('tarball_tar_parse_failed', 'The archive is not a tar archive, or is truncated.');
    }
    const path = pathOf(header);
    if (isFile(header) && !files.has(path)) files.set(path, tar.subarray(at + BLOCK, at + BLOCK + size));
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

/** The text of `pack.json` at the root of an archive. */
export function manifestIn(files: ReadonlyMap<string, Buffer>): string | Refusal {
  const manifest = files.get('pack.json');
  if (!manifest) return refuse('tarball_manifest_missing', 'The archive has no pack.json at its root.');
  if (manifest.length <= PACK_FILE_MAX) return manifest.toString('utf8');
  return refuse('tarball_manifest_too_large', `pack.json has more than ${PACK_FILE_MAX} bytes.`);
}

/** The text files of an archive. */
export function textsIn(files: ReadonlyMap<string, Buffer>): PackFiles {
  return (path) => {
    const bytes = files.get(path);
    return bytes && bytes.length <= PACK_FILE_MAX && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
  };
}

function isFile(header: Buffer): boolean {
  return FILE_TYPES.includes(String.fromCharCode(header[TYPE_AT]!));
}

function pathOf(header: Buffer): string {
  const prefix = textAt(header, PREFIX);
  return `${prefix && `${prefix}/`}${textAt(header, NAME)}`.replace(/^\.\//, '');
}

/** The size field, an octal number; undefined if it is not one. */
function sizeOf(header: Buffer): number | undefined {
  const digits = textAt(header, SIZE).trim();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}

function textAt(header: Buffer, { at, length }: { at: number; length: number }): string {
  const [text = ''] = header.toString('latin1', at, at + length).split('\0');
  return text;
}

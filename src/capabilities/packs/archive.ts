import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Refusal, refuse } from '../../protocol/errors.ts';
import { PACK_FILE_MAX } from '../../protocol/packs.ts';

const UNPACKED_MAX = 50_000_000;
const BLOCK = 512;
const NAME = { at: 0, length: 100 };
const SIZE = { at: 124, length: 12 };
const TYPE_AT = 156;
const PREFIX = { at: 345, length: 155 };
/** Ordinary files; the second is how old programs write them. */
const FILE_TYPES: readonly string[] = ['0', '\0'];

/** The bytes of `pack.json` at the root of a gzipped tar archive. Nothing else of the archive is looked at. */
export async function manifestIn(archive: Uint8Array): Promise<Buffer | Refusal> {
  let tar: Buffer;
  try {
    tar = await promisify(gunzip)(archive, { maxOutputLength: UNPACKED_MAX });
  } catch {
    return refuse('tarball_gunzip_failed', `The archive is not gzip, or has more than ${UNPACKED_MAX} bytes in it.`);
  }
  for (let at = 0; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const size = sizeOf(header);
    if (size === undefined || at + BLOCK + size > tar.length) {
      return refuse('tarball_tar_parse_failed', 'The archive is not a tar archive, or ends too soon.');
    }
    if (isManifest(header)) return manifestAt(tar.subarray(at + BLOCK, at + BLOCK + size));
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return refuse('tarball_manifest_missing', 'The archive has no pack.json at its root.');
}

function manifestAt(bytes: Buffer): Buffer | Refusal {
  if (bytes.length <= PACK_FILE_MAX) return bytes;
  return refuse('tarball_manifest_too_large', `pack.json has more than ${PACK_FILE_MAX} bytes.`);
}

function isManifest(header: Buffer): boolean {
  const name = textAt(header, NAME);
  const isFile = FILE_TYPES.includes(String.fromCharCode(header[TYPE_AT]!));
  return isFile && textAt(header, PREFIX) === '' && (name === 'pack.json' || name === './pack.json');
}

/** Undefined where there is no octal number. */
function sizeOf(header: Buffer): number | undefined {
  const digits = textAt(header, SIZE).trim();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}

function textAt(header: Buffer, { at, length }: { at: number; length: number }): string {
  const [text = ''] = header.toString('latin1', at, at + length).split('\0');
  return text;
}

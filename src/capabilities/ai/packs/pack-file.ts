import { PACK_FILE_MAX, type PackProvenance, type PackSignature } from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { bareKeyOf, signatureCheckOf } from '../../../system/ed25519.ts';

/** The text of a file that comes with a pack; undefined where there is none, or it is no text. */
export type PackFiles = (path: string) => string | undefined;

/** A pack that somebody wants installed, as it came. */
export interface PackFile {
  /** The text of `pack.json`, to the letter. */
  readonly file: string;
  /** What else came with it. */
  readonly files?: PackFiles;
  /** Of the archive that it came in, where it came in one. */
  readonly integrity?: string;
  /** What it was asked for as; it must say the same of itself. */
  readonly asked?: { readonly name: string; readonly version: string };
  readonly origin: Omit<PackProvenance, 'installedBy' | 'installedAt'>;
}

export function integrityOf(data: string | Uint8Array): string {
  return `sha256-${Buffer.from(sha256Hex(data), 'hex').toString('base64')}`;
}

export function checkIntegrity(data: string | Uint8Array, expected: string | undefined): Refusal | undefined {
  const actual = integrityOf(data);
  return expected === undefined || actual === expected ? undefined : misfit(expected, actual);
}

export function misfit(expected: string, actual: string): Refusal {
  const message = 'This is not what was announced: its SHA-256 is another.';
  return refuse('pack_integrity_failure', message, { expected, actual });
}

/** Keeps the key in one spelling, so that two signatures can be told to be by one hand. */
export function checkSignature(file: string, signature: PackSignature): PackSignature | Refusal {
  try {
    const isSigned = signatureCheckOf(signature.publicKey)(Buffer.from(file).toString('hex'), signature.value);
    if (isSigned) return { ...signature, publicKey: bareKeyOf(signature.publicKey) };
  } catch {
    return refuse('pack_signature_invalid', 'The public key is not an Ed25519 key.', { reason: 'key' });
  }
  return refuse('pack_signature_invalid', 'The signature is not one of this key over pack.json.', {
    reason: 'signature',
  });
}

/** What is in the file; a refusal when it is not JSON that can be kept to the letter. */
export function parseManifest(file: string): { readonly manifest: unknown } | Refusal {
  const problem = fileProblem(file);
  if (problem) return unreadable(problem);
  try {
    return { manifest: parseJson(file, 'file') };
  } catch (error) {
    if (error instanceof BadJson) return unreadable(error.message);
    throw error;
  }
}

function fileProblem(file: string): string | undefined {
  if (Buffer.byteLength(file) > PACK_FILE_MAX) return `pack.json has more than ${PACK_FILE_MAX} bytes.`;
  return file.isWellFormed() ? undefined : 'pack.json is not well-formed text.';
}

function unreadable(message: string): Refusal {
  return refuse('invalid_manifest', message, { path: '' });
}

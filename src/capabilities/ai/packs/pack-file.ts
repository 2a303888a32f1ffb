import { PACK_FILE_MAX, type PackSignature } from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { hexOf, rawPublicKeyOf, signatureVerifierOf } from '../../../system/ed25519.ts';

/** Integrity of some bytes, in the notation of lockfiles. */
export function integrityOf(data: string | Uint8Array): string {
  return `sha256-${Buffer.from(sha256Hex(data), 'hex').toString('base64')}`;
}

/** Refuses bytes that do not have the expected integrity. */
export function checkIntegrity(data: string | Uint8Array, expected: string | undefined): Refusal | undefined {
  const actual = integrityOf(data);
  return expected === undefined || actual === expected ? undefined : integrityMismatch(expected, actual);
}

/** The refusal for bytes with another integrity than expected. */
export function integrityMismatch(expected: string, actual: string): Refusal {
  const message = 'The SHA-256 of the pack differs from the expected one.';
  return refuse('pack_integrity_failure', message, { expected, actual });
}

/** A signature that was checked, and whether it covers every file of the pack or `pack.json` alone. */
interface CheckedSignature {
  readonly signature: PackSignature;
  readonly covers: 'whole' | 'manifest';
}

/** What a signature may be over: the text of `pack.json`, or bytes that stand for every file. */
interface SignedBytes {
  readonly file: string;
  readonly whole?: string | Uint8Array;
}

/** Checks a signature. The key comes back in one spelling, so that signatures by the same key can be recognised. */
export function checkSignature({ file, whole }: SignedBytes, signature: PackSignature): CheckedSignature | Refusal {
  const { publicKey, value } = signature;
  try {
    const isSigned = (bytes: string | Uint8Array) => signatureVerifierOf(publicKey)(hexOf(bytes), value);
    const known = { ...signature, publicKey: rawPublicKeyOf(publicKey) };
    if (isSigned(file)) return { signature: known, covers: 'manifest' };
    if (whole !== undefined && isSigned(whole)) return { signature: known, covers: 'whole' };
  } catch {
    return refuse('pack_signature_invalid', 'The public key is not an Ed25519 key.', { reason: 'key' });
  }
  return refuse('pack_signature_invalid', 'The signature does not match the pack and this key.', {
    reason: 'signature',
  });
}

/** The list of digests of all files, in the notation of `sha256sum` and sorted by path. */
export function digestList(file: string, files: Readonly<Record<string, string>>): string {
  const all = Object.entries({ ...files, 'pack.json': file }).sort(([a], [b]) => (a < b ? -1 : 1));
  return all.map(([path, text]) => `${sha256Hex(text)}  ${path}\n`).join('');
}

/** Whether a path cannot be in that list: with a line break in its name, one file would look like two. */
export function isUnlistable(path: string): boolean {
  return /\p{Cc}/u.test(path);
}

/** Parses `pack.json`; refuses text that is not JSON or could not be stored unchanged. */
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

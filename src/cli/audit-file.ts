import { createReadStream } from 'node:fs';
import { isObject } from '../protocol/format/json.ts';
import {
  type AuditCheckpoint,
  ChainVerifier,
  type HashedEntry,
  type Proofs,
  type VerifyResult,
} from '../protocol/trust/audit-chain.ts';
import { sha256Hex } from '../system/digest.ts';
import { signatureVerifierOf, type VerifyHex } from '../system/ed25519.ts';
import { jsonMembers } from './json-members.ts';

/** The header of an exported audit log: everything but its entries. */
export interface AuditFile {
  readonly tenant: string;
  readonly exportedAt: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly checkpoints: readonly FileCheckpoint[];
  /** Public keys in PEM format, by key id. */
  readonly keys: ReadonlyMap<string, string>;
}

interface FileCheckpoint extends AuditCheckpoint {
  readonly keyId: string;
}

/** The file is not an audit log export. */
class InvalidExport extends Error {
  override readonly name = 'InvalidExport';
}

/**
 * Verifies an exported audit log. The file is read twice, once for the header and once for the entries, so that it
 * never has to fit in memory. Without a trusted key, signatures are checked with the keys in the file.
 */
export async function verifyAuditFile(
  path: string,
  trusted?: VerifyHex,
): Promise<{ readonly file: AuditFile; readonly result: VerifyResult }> {
  const file = await readHeader(path);
  const { fromSeq, toSeq, checkpoints } = file;
  const verifier = new ChainVerifier(
    {
      fromSeq,
      toSeq,
      after: fromSeq - 1,
      last: Math.max(toSeq, checkpoints.at(-1)?.atSequence ?? 0),
      coveredUpTo: fromSeq - 1,
      checkpoints: checkpoints.map(({ keyId: _, ...checkpoint }) => checkpoint),
    },
    proofsOf(file, trusted),
  );
  for await (const { name, value } of members(path)) {
    if (name === 'entries') verifier.add((isObject(value) ? value : {}) as unknown as HashedEntry);
  }
  return { file, result: verifier.finish() };
}

async function readHeader(path: string): Promise<AuditFile> {
  const single = new Map<string, unknown>();
  const checkpoints: FileCheckpoint[] = [];
  const keys = new Map<string, string>();
  for await (const { name, value } of members(path)) {
    if (name === 'checkpoints') checkpoints.push(checkpointFrom(value));
    else if (name === 'signingKeys' || name === 'signingKey') keys.set(...keyFrom(value));
    else if (name !== 'entries') single.set(name, value);
  }
  const [fromSeq, toSeq] = [single.get('fromSeq'), single.get('toSeq')];
  if (single.get('bundleVersion') !== '1' || !isSequence(fromSeq) || !isSequence(toSeq)) {
    throw new InvalidExport('it is not an audit log export');
  }
  checkpoints.sort((a, b) => a.atSequence - b.atSequence);
  return {
    tenant: String(single.get('tenant')),
    exportedAt: String(single.get('exportedAt')),
    fromSeq,
    toSeq,
    checkpoints,
    keys,
  };
}

function members(path: string) {
  return jsonMembers(createReadStream(path, 'utf8') as AsyncIterable<string>);
}

function isSequence(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function checkpointFrom(value: unknown): FileCheckpoint {
  const { checkpointId, atSequence, merkleRoot, signature, signingKeyId } = isObject(value) ? value : {};
  if (!isSequence(atSequence)) throw new InvalidExport('a checkpoint has no valid atSequence');
  return {
    checkpoint: String(checkpointId),
    atSequence,
    merkleRoot: String(merkleRoot),
    signature: String(signature),
    keyId: String(signingKeyId),
  };
}

function keyFrom(value: unknown): [string, string] {
  const { keyId, publicKeyPEM } = isObject(value) ? value : {};
  return [String(keyId), String(publicKeyPEM)];
}

function proofsOf({ checkpoints, keys }: AuditFile, trusted: VerifyHex | undefined): Proofs {
  const checks = new Map([...keys].map(([keyId, pem]) => [keyId, signatureCheckFrom(pem)]));
  const keyIds = new Map(checkpoints.map(({ checkpoint, keyId }) => [checkpoint, keyId]));
  const checkOf = ({ checkpoint }: AuditCheckpoint) => trusted ?? checks.get(keyIds.get(checkpoint) ?? '');
  return {
    digest: sha256Hex,
    isSigned: (checkpoint) => checkOf(checkpoint)?.(checkpoint.merkleRoot, checkpoint.signature) ?? false,
  };
}

/** A malformed key verifies no signature, so its checkpoints are reported as invalid. */
function signatureCheckFrom(pem: string): VerifyHex {
  try {
    return signatureVerifierOf(pem);
  } catch {
    return () => false;
  }
}

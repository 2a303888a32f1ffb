import { createReadStream } from 'node:fs';
import { isObject } from '../protocol/format/json.ts';
import type { AnchorRecord } from '../protocol/trust/audit-anchors.ts';
import {
  type AuditCheckpoint,
  ChainVerifier,
  type HashedEntry,
  type Proofs,
  type VerifyResult,
} from '../protocol/trust/audit-chain.ts';
import { type EndorsedKey, firstOf, trustedKeys } from '../protocol/trust/audit-keys.ts';
import { sha256Hex } from '../system/digest.ts';
import { isTextSigned, rawPublicKeyOf, signatureVerifierOf } from '../system/ed25519.ts';
import { jsonMembers } from './json-members.ts';

/** The header of an exported audit log: everything but its entries. */
interface AuditFile {
  readonly tenant: string;
  readonly exportedAt: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  /** The last sequence that the log had when it was exported. */
  readonly lastSeq: number;
  readonly checkpoints: readonly FileCheckpoint[];
  /** The keys in the file. Being there does not make them trusted. */
  readonly keys: readonly EndorsedKey[];
  /** The id of the key that signed when the file was exported. */
  readonly currentKeyId: string;
}

/** What somebody who verifies a file knows from elsewhere. */
interface Evidence {
  /** Public keys to trust, with those that they endorse. Without any, the first key of the file's current one is. */
  readonly keys: readonly string[];
  /** Checkpoints of this tenant that were anchored. */
  readonly anchored: (tenant: string) => Promise<readonly AnchorRecord[]>;
}

const NO_EVIDENCE: Evidence = { keys: [], anchored: async () => [] };

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
export async function verifyAuditFile(path: string, evidence = NO_EVIDENCE): Promise<VerifiedFile> {
  const file = await readHeader(path);
  const { fromSeq, checkpoints } = file;
  const anchored = (await evidence.anchored(file.tenant)).filter((record) => concerns(file, record));
  // A log that was cut off ends before its anchors do.
  const toSeq = anchored.reduce((last, { atSequence }) => Math.max(last, atSequence), file.toSeq);
  const verifier = new ChainVerifier(
    {
      fromSeq,
      toSeq,
      after: fromSeq - 1,
      last: Math.max(toSeq, checkpoints.at(-1)?.atSequence ?? 0),
      coveredUpTo: fromSeq - 1,
      checkpoints: checkpoints.map(({ keyId: _, ...checkpoint }) => checkpoint),
      anchored,
    },
    proofsOf(file, evidence.keys),
  );
  for await (const { name, value } of members(path)) {
    if (name === 'entries') verifier.add((isObject(value) ? value : {}) as unknown as HashedEntry);
  }
  return { file, result: verifier.finish(), anchored: anchored.length };
}

/** A file, what was found in it, and with how many anchored checkpoints it was compared. */
export interface VerifiedFile {
  readonly file: AuditFile;
  readonly result: VerifyResult;
  readonly anchored: number;
}

/** Whether the file should have an anchored checkpoint: not if it is a part that ends earlier, or an older export. */
function concerns({ fromSeq, toSeq, lastSeq, exportedAt }: AuditFile, { atSequence, signedAt }: AnchorRecord): boolean {
  if (atSequence < fromSeq) return false;
  return atSequence <= toSeq || (toSeq === lastSeq && Date.parse(signedAt) <= Date.parse(exportedAt));
}

async function readHeader(path: string): Promise<AuditFile> {
  const single = new Map<string, unknown>();
  const checkpoints: FileCheckpoint[] = [];
  const keys = new Map<string, EndorsedKey>();
  let currentKeyId = '';
  for await (const { name, value } of members(path)) {
    if (name === 'checkpoints') checkpoints.push(checkpointFrom(value));
    else if (name === 'signingKeys' || name === 'signingKey') {
      const key = keyFrom(value);
      keys.set(key.keyId, key);
      if (name === 'signingKey') currentKeyId = key.keyId;
    } else if (name !== 'entries') single.set(name, value);
  }
  const [fromSeq, toSeq, lastSeq] = ['fromSeq', 'toSeq', 'lastSeq'].map((name) => single.get(name));
  if (single.get('bundleVersion') !== '1' || !isSequence(fromSeq) || !isSequence(toSeq)) {
    throw new InvalidExport('it is not an audit log export');
  }
  checkpoints.sort((a, b) => a.atSequence - b.atSequence);
  return {
    tenant: String(single.get('tenant')),
    exportedAt: String(single.get('exportedAt')),
    fromSeq,
    toSeq,
    lastSeq: isSequence(lastSeq) ? lastSeq : toSeq,
    checkpoints,
    keys: [...keys.values()],
    currentKeyId,
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

/** A malformed key verifies no signature, so its checkpoints are reported as invalid. */
function keyFrom(value: unknown): EndorsedKey {
  const { keyId, publicKeyPEM, endorsedBy, endorsement } = isObject(value) ? value : {};
  return {
    keyId: String(keyId),
    publicKey: rawKeyFrom(String(publicKeyPEM)),
    ...(typeof endorsedBy === 'string' ? { endorsedBy } : {}),
    ...(typeof endorsement === 'string' ? { endorsement } : {}),
  };
}

function rawKeyFrom(pem: string): string {
  try {
    return rawPublicKeyOf(pem);
  } catch {
    return '';
  }
}

/** The ids of the keys in a file that a chain of endorsements connects to these pinned public keys. */
export function trustedKeysIn({ keys, currentKeyId }: AuditFile, pinned: readonly string[]): ReadonlySet<string> {
  const first = firstOf(keys, currentKeyId)?.keyId;
  const pins = new Set(pinned.map(rawPublicKeyOf));
  const isPinned = ({ keyId, publicKey }: EndorsedKey) => (pins.size > 0 ? pins.has(publicKey) : keyId === first);
  const wellFormed = keys.filter(({ publicKey }) => publicKey !== '');
  return trustedKeys(wellFormed, isPinned, isTextSigned);
}

function proofsOf(file: AuditFile, pinned: readonly string[]): Proofs {
  const trusted = trustedKeysIn(file, pinned);
  const checks = new Map(
    file.keys
      .filter(({ keyId }) => trusted.has(keyId))
      .map(({ keyId, publicKey }) => [keyId, signatureVerifierOf(publicKey)]),
  );
  const keyIds = new Map(file.checkpoints.map(({ checkpoint, keyId }) => [checkpoint, keyId]));
  return {
    digest: sha256Hex,
    isSigned: ({ checkpoint, merkleRoot, signature }) =>
      checks.get(keyIds.get(checkpoint) ?? '')?.(merkleRoot, signature) ?? false,
  };
}

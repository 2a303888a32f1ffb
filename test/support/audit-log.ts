import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/**
 * A second reading of the rules of the audit log, from the protocol's text and with nothing of the project: what the
 * project makes is judged by it, and what it makes is shown to the project.
 */

// biome-ignore lint/suspicious/noExplicitAny: entries of any shape, the broken ones included
export type Entry = any;

export interface Checkpoint {
  readonly checkpoint: string;
  readonly atSequence: number;
  readonly merkleRoot: string;
  readonly signature: string;
}

export interface Log {
  readonly entries: Entry[];
  readonly checkpoints: Checkpoint[];
}

const { publicKey, privateKey } = generateKeyPairSync('ed25519');

export function isSignedHere({ merkleRoot, signature }: Checkpoint): boolean {
  return isSignedBy(publicKey, merkleRoot, signature);
}

/** RFC 8785, as far as entries need it: members sorted by name, no white space. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)}}`;
}

export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Level by level: pairs become one, a last odd one moves up. */
export function merkleRoot(leaves: readonly string[]): string {
  let level = [...leaves];
  while (level.length > 1) {
    const above: string[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const right = level[index + 1];
      above.push(right === undefined ? level[index]! : sha256(level[index]! + right));
    }
    level = above;
  }
  return level[0]!;
}

/** A log with these details, in which each checkpoint covers so many entries; what is left has none. */
export function makeLog(details: readonly unknown[], sizes: readonly number[]): Log {
  const entries: Entry[] = [];
  for (const detail of details) {
    const entry = {
      atSequence: entries.length + 1,
      occurredAt: '2026-01-01T00:00:00.000Z',
      tenant: 'alpha',
      actor: 'ada',
      action: 'thing.do',
      target: `thing-${entries.length}`,
      outcome: 'success',
      details: detail,
      prevHash: entries.at(-1)?.hash ?? null,
    };
    entries.push({ ...entry, hash: sha256(canonical(entry)) });
  }
  const checkpoints: Checkpoint[] = [];
  for (const size of sizes) {
    const before = checkpoints.at(-1)?.atSequence ?? 0;
    const covered = entries.slice(before, before + size);
    if (covered.length === 0) break;
    const root = merkleRoot(covered.map(({ hash }) => hash));
    const signature = sign(null, Buffer.from(root, 'hex'), privateKey).toString('base64');
    const atSequence = before + covered.length;
    checkpoints.push({ checkpoint: `cp-${atSequence}`, atSequence, merkleRoot: root, signature });
  }
  return { entries, checkpoints };
}

/** What a host exports. */
export interface Bundle {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly signingKeys: readonly { readonly keyId: string; readonly publicKeyPEM: string }[];
  readonly checkpoints: readonly {
    readonly atSequence: number;
    readonly merkleRoot: string;
    readonly signature: string;
    readonly signingKeyId: string;
  }[];
  readonly entries: readonly Entry[];
}

/** Everything that is wrong with an export, in words. */
export function problemsOf({ fromSeq, toSeq, signingKeys, checkpoints, entries }: Bundle): string[] {
  const problems: string[] = [];
  if (entries.length !== toSeq - fromSeq + 1) problems.push('it does not hold what it says it holds');
  for (const [index, { hash, ...entry }] of entries.entries()) {
    const before = index === 0 ? (fromSeq === 1 ? null : entry.prevHash) : entries[index - 1].hash;
    if (entry.atSequence !== fromSeq + index) problems.push(`${fromSeq + index} is not in its place`);
    if (entry.prevHash !== before) problems.push(`${entry.atSequence} does not point at the one before`);
    if (sha256(canonical(entry)) !== hash) problems.push(`${entry.atSequence} is not what its hash says`);
  }
  let covered = fromSeq - 1;
  for (const { atSequence, merkleRoot: root, signature, signingKeyId } of checkpoints) {
    const leaves = entries.slice(covered - fromSeq + 1, atSequence - fromSeq + 1).map(({ hash }) => hash);
    if (leaves.length !== atSequence - covered || merkleRoot(leaves) !== root)
      problems.push(`no root at ${atSequence}`);
    const pem = signingKeys.find(({ keyId }) => keyId === signingKeyId)?.publicKeyPEM ?? '';
    if (!isSignedBy(createPublicKey(pem), root, signature)) problems.push(`not signed at ${atSequence}`);
    covered = atSequence;
  }
  if (covered !== toSeq) problems.push(`nobody signed for what comes after ${covered}`);
  return problems;
}

/** Whether the key, base64 of its DER, signed the bytes that a root stands for. */
export function isSignedWith(spki: string, root: string, signature: string): boolean {
  return isSignedBy(
    createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' }),
    root,
    signature,
  );
}

function isSignedBy(key: KeyObject, root: string, signature: string): boolean {
  return verify(null, Buffer.from(root, 'hex'), key, Buffer.from(signature, 'base64'));
}

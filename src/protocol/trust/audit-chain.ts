import { canonicalJson } from '../format/json.ts';

/**
 * The rules of the audit log: how an entry is hashed, how a checkpoint sums up entries, and what is wrong with a log that
 * was tampered with. The host and whoever checks an export offline run the same code; it reads entries one at a time
 * and keeps none of them.
 */

/** An entry as it is hashed: SHA-256 of its canonical JSON, in lower-case hex, is its hash. */
export interface AuditEntry {
  readonly atSequence: number;
  readonly occurredAt: string;
  readonly tenant: string;
  readonly workspace?: string;
  readonly actor: string;
  readonly action: string;
  readonly target?: string;
  readonly outcome: string;
  readonly details?: unknown;
  /** The hash of the entry before; null at the first. */
  readonly prevHash: string | null;
}

/** An entry with the hash that was kept with it. */
export interface HashedEntry extends AuditEntry {
  readonly hash: string;
}

/** Sums up the entries after the checkpoint before it, up to `atSequence`. */
export interface AuditCheckpoint {
  readonly checkpoint: string;
  readonly atSequence: number;
  readonly merkleRoot: string;
  /** Base64 of the Ed25519 signature over the 32 bytes that the root stands for. */
  readonly signature: string;
}

export type Anomaly =
  | {
      readonly kind: 'chain-break';
      readonly atSeq: number;
      readonly expectedPrevHash: string | null;
      readonly actualPrevHash: string | null;
    }
  | { readonly kind: 'hash-mismatch' | 'missing-entry'; readonly atSeq: number; readonly detail?: string }
  | {
      readonly kind: 'merkle-mismatch' | 'signature-invalid';
      readonly atSeq: number;
      readonly checkpoint: string;
      readonly detail?: string;
    };

export interface VerifyResult {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Exactly when there are no anomalies. */
  readonly chainValid: boolean;
  readonly checkpointsValid: boolean;
  readonly checkpoints: readonly AuditCheckpoint[];
  readonly anomalies: readonly Anomaly[];
}

/** SHA-256 of a text, in lower-case hex. */
export type Digest = (text: string) => string;

export function entryHash(entry: AuditEntry, digest: Digest): string {
  return digest(canonicalJson(entry));
}

export function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/**
 * The Merkle root of hashes that come one by one. A pair becomes the hash of its two hex texts side by side; a last odd
 * one moves up unchanged. Only the roots of full subtrees are kept, each twice as large as the next or more.
 */
export class MerkleRoot {
  readonly #digest: Digest;
  readonly #subtrees: { readonly leaves: number; readonly root: string }[] = [];
  #leaves = 0;

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  get leaves(): number {
    return this.#leaves;
  }

  add(leaf: string): void {
    if (!isHash(leaf)) throw new Error('a leaf is 64 lower-case hex digits');
    this.#leaves++;
    let last = { leaves: 1, root: leaf };
    while (this.#subtrees.at(-1)?.leaves === last.leaves) {
      last = { leaves: 2 * last.leaves, root: this.#digest(this.#subtrees.pop()!.root + last.root) };
    }
    this.#subtrees.push(last);
  }

  root(): string {
    const roots = this.#subtrees.map(({ root }) => root);
    const last = roots.pop();
    if (last === undefined) throw new Error('a checkpoint covers at least one entry');
    return roots.reduceRight((right, left) => this.#digest(left + right), last);
  }
}

/** What of a log is checked, and what is known about it beforehand. */
export interface ChainRange {
  /** What was asked for; anomalies outside of it are not told. */
  readonly fromSeq: number;
  readonly toSeq: number;
  /** The sequence before the first entry that will be shown: 0 when the log is read from its beginning. */
  readonly after: number;
  /** The last sequence that there must be. */
  readonly last: number;
  /** Where the checkpoint before the first of `checkpoints` stands; 0 when there is none. */
  readonly coveredUpTo: number;
  /** Those inside the range, in order. */
  readonly checkpoints: readonly AuditCheckpoint[];
}

export interface Proofs {
  readonly digest: Digest;
  isSigned(checkpoint: AuditCheckpoint): boolean;
}

/** A log that was torn to pieces is told by so many of them. */
export const ANOMALIES_MAX = 1_000;

/** Is shown the entries of a log in order, and then says what is wrong with it. */
export class ChainVerifier {
  readonly #range: ChainRange;
  readonly #proofs: Proofs;
  readonly #anomalies: Anomaly[] = [];
  #lastSequence: number;
  /** The hash of the entry before, from its content; undefined where there is none to look at. */
  #lastHash: string | null | undefined;
  #leaves: MerkleRoot;
  #coveredUpTo: number;
  #nextCheckpoint = 0;

  constructor(range: ChainRange, proofs: Proofs) {
    this.#range = range;
    this.#proofs = proofs;
    this.#lastSequence = range.after;
    this.#lastHash = range.after === 0 ? null : undefined;
    this.#leaves = new MerkleRoot(proofs.digest);
    this.#coveredUpTo = range.coveredUpTo;
  }

  add({ hash, ...entry }: HashedEntry): void {
    const sequence = entry.atSequence;
    const actualHash = entryHash(entry, this.#proofs.digest);
    const isInPlace = this.#checkPlace(sequence);
    // An entry whose number is none is told by where it stands.
    const atSeq = Number.isSafeInteger(sequence) ? sequence : this.#lastSequence + 1;
    if (hash !== actualHash) this.#report({ kind: 'hash-mismatch', atSeq });
    if (this.#lastHash !== undefined && entry.prevHash !== this.#lastHash) {
      this.#reportBreak(atSeq, entry, this.#lastHash);
    }
    this.#lastHash = actualHash;
    if (!isInPlace) return;
    this.#lastSequence = sequence;
    this.#closeCheckpoints(sequence - 1);
    if (sequence > this.#coveredUpTo) this.#leaves.add(actualHash);
    this.#closeCheckpoints(sequence);
  }

  finish(): VerifyResult {
    if (this.#lastSequence < this.#range.last) this.#reportGap(this.#lastSequence + 1, this.#range.last);
    this.#closeCheckpoints(Number.POSITIVE_INFINITY);
    const { fromSeq, toSeq, checkpoints } = this.#range;
    return {
      fromSeq,
      toSeq,
      chainValid: this.#anomalies.length === 0,
      checkpointsValid: !this.#anomalies.some((anomaly) => 'checkpoint' in anomaly),
      checkpoints,
      anomalies: this.#anomalies,
    };
  }

  /** Whether it stands where an entry may stand: behind all that came before. */
  #checkPlace(sequence: number): boolean {
    if (!Number.isSafeInteger(sequence) || sequence <= this.#lastSequence) return false;
    if (sequence > this.#lastSequence + 1) this.#reportGap(this.#lastSequence + 1, sequence - 1);
    return true;
  }

  /** Without the entries in between, nobody knows what the next one should point at. */
  #reportGap(first: number, last: number): void {
    this.#lastHash = undefined;
    const from = Math.max(first, this.#range.fromSeq);
    const to = Math.min(last, this.#range.toSeq);
    const detail = from === to ? 'one entry is missing' : `${to - from + 1} entries are missing, up to ${to}`;
    if (from <= to) this.#report({ kind: 'missing-entry', atSeq: from, detail });
  }

  #reportBreak(atSeq: number, { prevHash }: AuditEntry, expectedPrevHash: string | null): void {
    // A member that is not there, or no text at all, is told as an empty one.
    const actualPrevHash = prevHash === null || typeof prevHash === 'string' ? prevHash : '';
    this.#report({ kind: 'chain-break', atSeq, expectedPrevHash, actualPrevHash });
  }

  /** Judges the checkpoints that cover entries up to this one. */
  #closeCheckpoints(upTo: number): void {
    for (;;) {
      const checkpoint = this.#range.checkpoints[this.#nextCheckpoint];
      if (checkpoint === undefined || checkpoint.atSequence > upTo) return;
      this.#nextCheckpoint++;
      this.#judge(checkpoint);
      this.#leaves = new MerkleRoot(this.#proofs.digest);
      this.#coveredUpTo = checkpoint.atSequence;
    }
  }

  #judge(checkpoint: AuditCheckpoint): void {
    const { atSequence, merkleRoot } = checkpoint;
    const place = { atSeq: atSequence, checkpoint: checkpoint.checkpoint };
    const isWhole = this.#leaves.leaves > 0 && this.#leaves.leaves === atSequence - this.#coveredUpTo;
    if (!isWhole || this.#leaves.root() !== merkleRoot) this.#report({ kind: 'merkle-mismatch', ...place });
    if (!this.#proofs.isSigned(checkpoint)) this.#report({ kind: 'signature-invalid', ...place });
  }

  #report(anomaly: Anomaly): void {
    const { fromSeq, toSeq } = this.#range;
    const isAskedFor = anomaly.atSeq >= fromSeq && anomaly.atSeq <= toSeq;
    if (isAskedFor && this.#anomalies.length < ANOMALIES_MAX) this.#anomalies.push(anomaly);
  }
}

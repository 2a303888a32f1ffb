import { canonicalJson } from '../format/json.ts';

/**
 * The rules of the audit log: how entries are hashed, how checkpoints cover them, and how tampering is detected. The
 * host and offline verifiers run the same code. It processes entries one at a time, in constant memory.
 */

/** The hashed content of an entry: its hash is the SHA-256 of its canonical JSON, in lower-case hex. */
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
  /** Hash of the previous entry; null for the first. */
  readonly prevHash: string | null;
}

/** An entry with its stored hash. */
export interface HashedEntry extends AuditEntry {
  readonly hash: string;
}

/** A signed Merkle root over the entries from the previous checkpoint up to `atSequence`. */
export interface AuditCheckpoint {
  readonly checkpoint: string;
  readonly atSequence: number;
  readonly merkleRoot: string;
  /** Base64 of the Ed25519 signature over the 32 bytes of the root. */
  readonly signature: string;
}

/** A checkpoint as it was copied to a place outside the host when it was signed. */
export type AnchoredCheckpoint = Pick<AuditCheckpoint, 'checkpoint' | 'atSequence' | 'merkleRoot'>;

/** A sign of tampering or damage, with the sequence at which it was found. */
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

/** The result of verifying a range of the log. */
export interface VerifyResult {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** True if there are no anomalies. */
  readonly chainValid: boolean;
  /** True if no anomaly concerns a checkpoint. */
  readonly checkpointsValid: boolean;
  readonly checkpoints: readonly AuditCheckpoint[];
  readonly anomalies: readonly Anomaly[];
}

/** Computes the SHA-256 of a text, in lower-case hex. */
export type Digest = (text: string) => string;

/** The hash of an entry, computed from its content. */
export function entryHash(entry: AuditEntry, digest: Digest): string {
  return digest(canonicalJson(entry));
}

/** Whether a text has the form of a hash. */
export function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/**
 * Computes a Merkle root incrementally. A pair becomes the hash of its two hex texts concatenated; an odd last node
 * moves up unchanged. Only the roots of complete subtrees are kept, so memory grows with the logarithm of the leaves.
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
    if (!isHash(leaf)) throw new Error('a Merkle leaf must be 64 lower-case hex digits');
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
    if (last === undefined) throw new Error('a checkpoint must cover at least one entry');
    return roots.reduceRight((right, left) => this.#digest(left + right), last);
  }
}

/** The range of the log to verify, and what is already known about it. */
export interface ChainRange {
  /** First sequence of the requested range; anomalies outside the range are not reported. */
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Sequence before the first entry that will be added; 0 if the log is read from its beginning. */
  readonly after: number;
  /** The last sequence that must exist. */
  readonly last: number;
  /** Sequence of the checkpoint before the first one in `checkpoints`; 0 if there is none. */
  readonly coveredUpTo: number;
  /** The checkpoints inside the range, in order. */
  readonly checkpoints: readonly AuditCheckpoint[];
  /** Checkpoints that the log must have, because copies of them are outside. */
  readonly anchored?: readonly AnchoredCheckpoint[];
}

/** The cryptographic functions that verification needs. */
export interface Proofs {
  readonly digest: Digest;
  isSigned(checkpoint: AuditCheckpoint): boolean;
}

/** Maximum number of anomalies reported. */
export const ANOMALIES_MAX = 1_000;

/** Verifies the hash chain and checkpoints of a log whose entries are added in order. */
export class ChainVerifier {
  readonly #range: ChainRange;
  readonly #proofs: Proofs;
  readonly #anomalies: Anomaly[] = [];
  #lastSequence: number;
  /** Hash of the previous entry, computed from its content; undefined if that entry is missing. */
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

  /** Verifies the next entry. */
  add({ hash, ...entry }: HashedEntry): void {
    const sequence = entry.atSequence;
    const actualHash = entryHash(entry, this.#proofs.digest);
    const isInOrder = this.#isNextInOrder(sequence);
    // An entry with an invalid sequence is reported at its position.
    const atSeq = Number.isSafeInteger(sequence) ? sequence : this.#lastSequence + 1;
    if (hash !== actualHash) this.#report({ kind: 'hash-mismatch', atSeq });
    if (this.#lastHash !== undefined && entry.prevHash !== this.#lastHash) {
      this.#reportBreak(atSeq, entry, this.#lastHash);
    }
    this.#lastHash = actualHash;
    if (!isInOrder) return;
    this.#lastSequence = sequence;
    this.#closeCheckpoints(sequence - 1);
    if (sequence > this.#coveredUpTo) this.#leaves.add(actualHash);
    this.#closeCheckpoints(sequence);
  }

  /** Verifies what remains after the last entry, and returns the result. */
  finish(): VerifyResult {
    if (this.#lastSequence < this.#range.last) this.#reportGap(this.#lastSequence + 1, this.#range.last);
    this.#closeCheckpoints(Number.POSITIVE_INFINITY);
    this.#compareWithAnchors();
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

  /** Whether the sequence is greater than all before; reports a gap if it skips some. */
  #isNextInOrder(sequence: number): boolean {
    if (!Number.isSafeInteger(sequence) || sequence <= this.#lastSequence) return false;
    if (sequence > this.#lastSequence + 1) this.#reportGap(this.#lastSequence + 1, sequence - 1);
    return true;
  }

  /** After a gap the expected `prevHash` of the next entry is unknown. */
  #reportGap(first: number, last: number): void {
    this.#lastHash = undefined;
    const from = Math.max(first, this.#range.fromSeq);
    const to = Math.min(last, this.#range.toSeq);
    const detail = from === to ? 'one entry is missing' : `${to - from + 1} entries are missing, up to ${to}`;
    if (from <= to) this.#report({ kind: 'missing-entry', atSeq: from, detail });
  }

  #reportBreak(atSeq: number, { prevHash }: AuditEntry, expectedPrevHash: string | null): void {
    // A missing or non-text member is reported as an empty string.
    const actualPrevHash = prevHash === null || typeof prevHash === 'string' ? prevHash : '';
    this.#report({ kind: 'chain-break', atSeq, expectedPrevHash, actualPrevHash });
  }

  /** Verifies the checkpoints that cover entries up to this sequence. */
  #closeCheckpoints(upTo: number): void {
    for (;;) {
      const checkpoint = this.#range.checkpoints[this.#nextCheckpoint];
      if (checkpoint === undefined || checkpoint.atSequence > upTo) return;
      this.#nextCheckpoint++;
      this.#verifyCheckpoint(checkpoint);
      this.#leaves = new MerkleRoot(this.#proofs.digest);
      this.#coveredUpTo = checkpoint.atSequence;
    }
  }

  #verifyCheckpoint(checkpoint: AuditCheckpoint): void {
    const { atSequence, merkleRoot } = checkpoint;
    const place = { atSeq: atSequence, checkpoint: checkpoint.checkpoint };
    const isComplete = this.#leaves.leaves > 0 && this.#leaves.leaves === atSequence - this.#coveredUpTo;
    if (!isComplete || this.#leaves.root() !== merkleRoot) this.#report({ kind: 'merkle-mismatch', ...place });
    if (!this.#proofs.isSigned(checkpoint)) this.#report({ kind: 'signature-invalid', ...place });
  }

  /** A log that was cut off or signed again lacks a checkpoint that is anchored, or has another one in its place. */
  #compareWithAnchors(): void {
    const { checkpoints, anchored = [] } = this.#range;
    const roots = new Map(checkpoints.map(({ atSequence, merkleRoot }) => [atSequence, merkleRoot]));
    for (const { atSequence: atSeq, checkpoint, merkleRoot } of anchored) {
      if (roots.get(atSeq) === merkleRoot) continue;
      const detail = roots.has(atSeq) ? 'the anchor has another root' : 'the anchor has it, the log does not';
      this.#report({ kind: 'merkle-mismatch', atSeq, checkpoint, detail });
    }
  }

  #report(anomaly: Anomaly): void {
    const { fromSeq, toSeq } = this.#range;
    const isInRange = anomaly.atSeq >= fromSeq && anomaly.atSeq <= toSeq;
    if (isInRange && this.#anomalies.length < ANOMALIES_MAX) this.#anomalies.push(anomaly);
  }
}

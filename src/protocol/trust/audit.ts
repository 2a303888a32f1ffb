import { Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Sequence = Type.Integer({ minimum: 0 });
const PrevHash = Type.Union([Type.String(), Type.Null()], { description: 'Hash of the previous entry' });
const Detail = Type.Optional(Type.String());

const Checkpoint = Closed(
  {
    checkpoint: Type.String({ minLength: 1, maxLength: 256 }),
    atSequence: Sequence,
    merkleRoot: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    signature: Type.String({
      minLength: 1,
      description: 'Base64 of the Ed25519 signature over the 32 bytes of the root',
    }),
  },
  { $id: 'AuditCheckpoint' },
);

const Anomaly = Type.Union(
  [
    Closed({
      kind: Type.Literal('chain-break'),
      atSeq: Sequence,
      expectedPrevHash: PrevHash,
      actualPrevHash: PrevHash,
      detail: Detail,
    }),
    Closed({ kind: OneOf(['hash-mismatch', 'missing-entry']), atSeq: Sequence, detail: Detail }),
    Closed({
      kind: OneOf(['merkle-mismatch', 'signature-invalid']),
      atSeq: Sequence,
      checkpoint: NonEmpty,
      detail: Detail,
    }),
  ],
  { $id: 'AuditAnomaly' },
);

/** The result of verifying a part of the audit log. */
export const AuditVerifyResult = Closed(
  {
    fromSeq: Sequence,
    toSeq: Sequence,
    chainValid: Type.Boolean({ description: 'True if there are no anomalies' }),
    checkpointsValid: Type.Optional(Type.Boolean()),
    checkpoints: Type.Array(Checkpoint),
    anomalies: Type.Array(Anomaly),
  },
  { $id: 'AuditVerifyResult' },
);

/** Outcomes of an audited action. */
export const AUDIT_OUTCOMES = ['success', 'denied', 'failed'] as const;
/** One of AUDIT_OUTCOMES. */
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** An audit entry as listed. */
export const AuditItem = Type.Object(
  {
    sequence: Type.Integer({ minimum: 1 }),
    at: Timestamp,
    actor: Type.String({ description: 'Opaque id of the principal' }),
    action: Type.String(),
    target: Type.Optional(Type.String()),
    outcome: OneOf(AUDIT_OUTCOMES),
    details: Type.Optional(AnyObject),
    hash: Type.String(),
    prevHash: PrevHash,
  },
  { $id: 'AuditItem' },
);

import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

/** Kinds of artifact that a proposal can contain; each has its own installer. */
export const ARTIFACT_KINDS = ['prompt-template', 'workflow-chain-pack', 'agent-pack', 'automation'] as const;
/** One of ARTIFACT_KINDS. */
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];
const Kind = OneOf(ARTIFACT_KINDS);

/** States of a proposal. */
export const PROPOSAL_STATES = ['draft', 'revised', 'applied', 'rejected', 'archived'] as const;
/** One of PROPOSAL_STATES. */
export type ProposalState = (typeof PROPOSAL_STATES)[number];

/** How a proposal is applied: after approval at a gate, or directly by a principal with permission. */
export const ACTIVATIONS = ['approval-gate', 'direct-rbac'] as const;
/** One of ACTIVATIONS. */
export type Activation = (typeof ACTIVATIONS)[number];

const RunRefs = Type.Array(NonEmpty, { description: 'Runs from which the proposal was derived' });
const NullableText = Type.Union([NonEmpty, Type.Null()]);

/** An artifact that the host derived from past runs and proposes for installation. */
export const Proposal = Closed(
  {
    id: NonEmpty,
    kind: Kind,
    state: OneOf(PROPOSAL_STATES),
    title: Optional(Type.String()),
    rationale: Optional(Type.String()),
    artifact: Type.Unsafe<Record<string, unknown>>({
      ...AnyObject,
      description: 'The artifact as it will be installed',
    }),
    provenance: Closed({ sourceRunIds: RunRefs, synthesizerModel: Optional(Type.String()) }),
    duplicateOf: Optional(NullableText),
    owner: Closed({ tenant: NonEmpty, workspace: Optional(NonEmpty), principal: Optional(NonEmpty) }),
    activation: Optional(
      Type.Union([
        Closed({ approvalId: Optional(NullableText), installedArtifactRef: Optional(NonEmpty) }),
        Type.Null({ description: 'Null until the proposal is applied' }),
      ]),
    ),
    createdAt: Timestamp,
    updatedAt: Optional(Timestamp),
  },
  { $id: 'Proposal' },
);
/** A proposal as returned to callers; `ProposalEvidence` has its history. */
export type Proposal = Static<typeof Proposal>;

/** Revises a proposal. The artifact's exact text is stored, and installed if the proposal is applied. */
export const ReviseProposalRequest = Closed(
  {
    artifact: Optional(Type.Unsafe<Record<string, unknown>>(AnyObject)),
    title: Optional(Type.String({ maxLength: 500 })),
    rationale: Optional(Type.String({ maxLength: 10_000 })),
    note: Optional(Type.String({ maxLength: 10_000, description: 'Reason for the change, shown in the history' })),
  },
  { $id: 'ReviseProposalRequest', minProperties: 1 },
);
/** A valid revision; it changes at least one member. */
export type ReviseProposalRequest = Static<typeof ReviseProposalRequest>;

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the artifact text, in hex' });

/** Applies a proposal. */
export const ApplyProposalRequest = Type.Object(
  { artifactHash: Optional(Hash) },
  {
    $id: 'ApplyProposalRequest',
    description: 'The hash of the reviewed artifact; `If-Match` with the ETag of the proposal does the same',
  },
);
/** A valid request to apply; with a hash, only the artifact that has it is applied. */
export type ApplyProposalRequest = Static<typeof ApplyProposalRequest>;

/** Rejects a proposal. */
export const RejectProposalRequest = Type.Object(
  {
    reason: Optional(Type.String({ maxLength: 10_000 })),
    note: Optional(Type.String({ maxLength: 10_000, description: 'Alias of reason' })),
    never: Optional(Type.Boolean({ description: 'Whether the habit is never proposed again, also on new evidence' })),
  },
  { $id: 'RejectProposalRequest' },
);
/** A valid rejection; the reason is optional. */
export type RejectProposalRequest = Static<typeof RejectProposalRequest>;

/** A page of proposals. */
export const ProposalList = Type.Object(
  { proposals: Type.Array(Proposal), nextCursor: Optional(Type.String()) },
  { $id: 'ProposalList' },
);
/** A page of proposals; without `nextCursor` it is the last. */
export type ProposalList = Static<typeof ProposalList>;

/** The response if the proposal was applied at once. */
export const AppliedProposal = Type.Object({ installedArtifactRef: NonEmpty }, { $id: 'AppliedProposal' });
/** The result of a direct activation; the reference identifies an `InstalledArtifact`. */
export type AppliedProposal = Static<typeof AppliedProposal>;

/** The response if the proposal first needs approval at a gate. */
export const PendingProposal = Type.Object(
  {
    proposalId: NonEmpty,
    state: OneOf(PROPOSAL_STATES),
    activation: Type.Literal('approval-gate'),
    approvalId: NonEmpty,
  },
  { $id: 'PendingProposal' },
);
/** The result of a request for approval; `approvalId` identifies the gate. */
export type PendingProposal = Static<typeof PendingProposal>;

const Count = Type.Integer({ minimum: 0 });

/** Details of a proposal: history, source runs, open gate, and what prevents it from being applied. */
export const ProposalEvidence = Type.Object(
  {
    proposalId: NonEmpty,
    artifactHash: Hash,
    runId: Type.String({ description: 'Management run whose log records the life of the proposal' }),
    revisions: Type.Array(
      Type.Object({
        at: Timestamp,
        by: Type.String({ description: 'Principal; `host` for the draft' }),
        hash: Hash,
        diff: Type.String({
          description: 'Line diff against the previous revision; each line starts with +, - or a space',
        }),
        note: Optional(Type.String()),
      }),
    ),
    change: Optional(
      Type.String({
        description: 'Line diff against the artifact it would replace; each line starts with +, - or a space',
      }),
    ),
    gate: Optional(
      Type.Object({
        approvalId: NonEmpty,
        nodeId: NonEmpty,
        artifactHash: Hash,
        requiredScope: Type.String(),
        requiredRole: Optional(Type.String()),
        quorum: Type.Integer({ minimum: 1 }),
        grantedBy: Type.Array(Type.String()),
        requestedAt: Timestamp,
        expiresAt: Optional(Timestamp),
      }),
    ),
    obstacle: Optional(
      Type.Object(
        {
          message: Type.String(),
          path: Optional(Type.String({ description: 'JSON pointer to the invalid part of the artifact' })),
          reason: Optional(Type.String({ description: '`stale`: the artifact it would replace has changed' })),
        },
        { description: 'Why the proposal cannot be applied now' },
      ),
    ),
    rejectReason: Optional(Type.String()),
    neverAgain: Optional(Type.Literal(true, { description: 'It was rejected for good' })),
    earlier: Optional(
      Type.Array(Type.Object({ proposalId: NonEmpty, at: Timestamp, reason: Optional(Type.String()) }), {
        description: 'Rejected proposals of the same habit',
      }),
    ),
    outcomes: Optional(
      Type.Object(
        {
          runs: Count,
          completed: Count,
          failed: Count,
          cancelled: Count,
          flagged: Count,
          disputed: Count,
          ratings: Count,
          meanRating: Optional(Type.Number()),
          meanCostUsd: Optional(
            Type.Number({ description: 'Cost of models, on average over the runs whose prices are known' }),
          ),
        },
        { description: 'How the source runs ended, and what people thought of them' },
      ),
    ),
    sources: Type.Array(
      Type.Object(
        { runId: NonEmpty, why: Type.String(), excerpt: Optional(Type.String()) },
        { description: 'A source run' },
      ),
    ),
    nearest: Type.Array(Type.Object({ ref: NonEmpty, score: Type.Number() })),
    preview: Optional(Type.Unknown()),
    uninstalledAt: Optional(Timestamp),
  },
  { $id: 'ProposalEvidence' },
);
/** The evidence that a reviewer needs; `obstacle` is absent if nothing prevents its application. */
export type ProposalEvidence = Static<typeof ProposalEvidence>;

const installedFacts = {
  ref: NonEmpty,
  kind: Kind,
  proposalId: NonEmpty,
  sha256: Hash,
  installedAt: Timestamp,
  installedBy: NonEmpty,
  replaces: Optional(
    Type.String({ description: 'Artifact that was in use before, restored when this one is uninstalled' }),
  ),
};

/** An artifact that an applied proposal installed, as listed. */
export const InstalledArtifactSummary = Type.Object(installedFacts, { $id: 'InstalledArtifactSummary' });
/** An installed artifact without its text; `sha256` identifies the exact text. */
export type InstalledArtifactSummary = Static<typeof InstalledArtifactSummary>;

/** An installed artifact with its exact text. */
export const InstalledArtifact = Type.Object(
  { ...installedFacts, text: Type.String({ description: 'Exact text of the artifact' }) },
  { $id: 'InstalledArtifact' },
);
/** An installed artifact; `text` is what was approved, byte for byte. */
export type InstalledArtifact = Static<typeof InstalledArtifact>;

/** Events about proposals; they never contain the artifact. */
export const PROPOSAL_EVENTS = {
  'proposal.created': {
    tier: 'updates',
    payload: Closed({
      proposalId: NonEmpty,
      kind: Kind,
      sourceRunIds: Optional(RunRefs),
      duplicateOf: Optional(NullableText),
    }),
  },
  'proposal.activated': {
    tier: 'updates',
    payload: Closed({
      proposalId: NonEmpty,
      kind: Kind,
      installedArtifactRef: NonEmpty,
      approvalId: Optional(NullableText),
    }),
  },
} as const;

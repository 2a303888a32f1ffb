import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

/** What agents may learn: each kind is installed where the things of its kind are. */
export const ARTIFACT_KINDS = ['prompt-template', 'workflow-chain-pack', 'agent-pack', 'automation'] as const;
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];
const Kind = OneOf(ARTIFACT_KINDS);

export const PROPOSAL_STATES = ['draft', 'revised', 'applied', 'rejected', 'archived'] as const;
export type ProposalState = (typeof PROPOSAL_STATES)[number];

/** How a proposal is put into use: through a gate that people open, or at once by whoever may. */
export const ACTIVATIONS = ['approval-gate', 'direct-rbac'] as const;
export type Activation = (typeof ACTIVATIONS)[number];

const RunRefs = Type.Array(NonEmpty, { description: 'Runs that it was learnt from' });
const NullableText = Type.Union([NonEmpty, Type.Null()]);

export const Proposal = Closed(
  {
    id: NonEmpty,
    kind: Kind,
    state: OneOf(PROPOSAL_STATES),
    title: Optional(Type.String()),
    rationale: Optional(Type.String()),
    artifact: Type.Unsafe<Record<string, unknown>>({ ...AnyObject, description: 'As it would be installed' }),
    provenance: Closed({ sourceRunIds: RunRefs, synthesizerModel: Optional(Type.String()) }),
    duplicateOf: Optional(NullableText),
    owner: Closed({ tenant: NonEmpty, workspace: Optional(NonEmpty), principal: Optional(NonEmpty) }),
    activation: Optional(
      Type.Union([
        Closed({ approvalId: Optional(NullableText), installedArtifactRef: Optional(NonEmpty) }),
        Type.Null({ description: 'Until it is applied' }),
      ]),
    ),
    createdAt: Timestamp,
    updatedAt: Optional(Timestamp),
  },
  { $id: 'Proposal' },
);
export type Proposal = Static<typeof Proposal>;

/** What is sent stands there to the letter until it is sent anew, and is what will be installed. */
export const ReviseProposalRequest = Closed(
  {
    artifact: Optional(Type.Unsafe<Record<string, unknown>>(AnyObject)),
    title: Optional(Type.String({ maxLength: 500 })),
    rationale: Optional(Type.String({ maxLength: 10_000 })),
    note: Optional(Type.String({ maxLength: 10_000, description: 'Why, for those who look at the history' })),
  },
  { $id: 'ReviseProposalRequest', minProperties: 1 },
);
export type ReviseProposalRequest = Static<typeof ReviseProposalRequest>;

export const RejectProposalRequest = Type.Object(
  {
    reason: Optional(Type.String({ maxLength: 10_000 })),
    note: Optional(Type.String({ maxLength: 10_000, description: 'Another word for reason' })),
  },
  { $id: 'RejectProposalRequest' },
);
export type RejectProposalRequest = Static<typeof RejectProposalRequest>;

export const ProposalList = Type.Object(
  { proposals: Type.Array(Proposal), nextCursor: Optional(Type.String()) },
  { $id: 'ProposalList' },
);
export type ProposalList = Static<typeof ProposalList>;

export const AppliedProposal = Type.Object({ installedArtifactRef: NonEmpty }, { $id: 'AppliedProposal' });
export type AppliedProposal = Static<typeof AppliedProposal>;

/** People have to agree first. */
export const PendingProposal = Type.Object(
  {
    proposalId: NonEmpty,
    state: OneOf(PROPOSAL_STATES),
    activation: Type.Literal('approval-gate'),
    approvalId: NonEmpty,
  },
  { $id: 'PendingProposal' },
);
export type PendingProposal = Static<typeof PendingProposal>;

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the text, in hex' });

/** What a proposal itself has no room for. */
export const ProposalEvidence = Type.Object(
  {
    proposalId: NonEmpty,
    artifactHash: Hash,
    runId: Type.String({ description: 'The run that tells its life' }),
    revisions: Type.Array(
      Type.Object({
        at: Timestamp,
        by: Type.String({ description: '`host` for the draft' }),
        hash: Hash,
        diff: Type.String({ description: 'Against the revision before: a line each, with +, - or a space in front' }),
        note: Optional(Type.String()),
      }),
    ),
    change: Optional(
      Type.String({
        description: 'Against what it would take the place of: a line each, with +, - or a space in front',
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
          path: Optional(Type.String({ description: 'Where it does not fit its kind: a JSON pointer' })),
          reason: Optional(Type.String({ description: '`stale`: what it would take the place of has changed' })),
        },
        { description: 'What would keep it from being applied now' },
      ),
    ),
    rejectReason: Optional(Type.String()),
    sources: Type.Array(
      Type.Object({ runId: NonEmpty, why: Type.String(), excerpt: Optional(Type.String()) }, { description: 'Runs' }),
    ),
    nearest: Type.Array(Type.Object({ ref: NonEmpty, score: Type.Number() })),
    preview: Optional(Type.Unknown()),
    uninstalledAt: Optional(Timestamp),
  },
  { $id: 'ProposalEvidence' },
);
export type ProposalEvidence = Static<typeof ProposalEvidence>;

const installedFacts = {
  ref: NonEmpty,
  kind: Kind,
  proposalId: NonEmpty,
  sha256: Hash,
  installedAt: Timestamp,
  installedBy: NonEmpty,
  replaces: Optional(Type.String({ description: 'What was in use before, and is again once this is uninstalled' })),
};

/** What an applied proposal has put into use, as lists show it. */
export const InstalledArtifactSummary = Type.Object(installedFacts, { $id: 'InstalledArtifactSummary' });
export type InstalledArtifactSummary = Static<typeof InstalledArtifactSummary>;

export const InstalledArtifact = Type.Object(
  { ...installedFacts, text: Type.String({ description: 'The artifact, to the letter' }) },
  { $id: 'InstalledArtifact' },
);
export type InstalledArtifact = Static<typeof InstalledArtifact>;

/** What the log tells of a proposal: never what is proposed. */
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

import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty, OneOf, Timestamp } from './schema.ts';

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

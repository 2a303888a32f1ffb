import { Type } from 'typebox';
import { Closed, NonEmpty, OneOf } from './schema.ts';

const Optional = Type.Optional;

/** What agents may learn: each kind is installed where the things of its kind are. */
export const ARTIFACT_KINDS = ['prompt-template', 'workflow-chain-pack', 'agent-pack', 'automation'] as const;
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];
export const Kind = OneOf(ARTIFACT_KINDS);

const RunRefs = Type.Array(NonEmpty, { description: 'Runs that it was learnt from' });
const NullableText = Type.Union([NonEmpty, Type.Null()]);

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

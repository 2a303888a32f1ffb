import { type Static, Type } from 'typebox';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import {
  ACTIVATIONS,
  type Activation,
  ARTIFACT_KINDS,
  type ArtifactKind,
} from '../../../protocol/learning/proposals.ts';
import { NAME } from '../../../protocol/trust/keys.ts';
import { ROLES } from '../../../protocol/trust/scopes.ts';
import { readOperatorList } from '../../operator-list.ts';
import { defineSettings } from '../../settings.ts';

const Optional = Type.Optional;
const RoleName = OneOf(ROLES);

/** Who has to approve proposals of a tenant or kind. The first rule that matches a proposal applies. */
export const GateRule = Closed({
  tenant: Optional(Type.String({ pattern: NAME.source })),
  kind: Optional(OneOf(ARTIFACT_KINDS)),
  quorum: Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  requiredRole: Optional(RoleName),
  override: Optional(Closed({ requiredRole: RoleName })),
  overrideBypassesQuorum: Optional(Type.Boolean()),
  timeoutSec: Optional(Type.Number({ exclusiveMinimum: 0, maximum: 31_536_000 })),
});
/** One rule of `CAPSTAN_PROPOSAL_GATES`. */
export type GateRule = Static<typeof GateRule>;

/** How proposals are applied. */
export interface ProposalSettings {
  readonly activation: Activation;
  readonly gates: readonly GateRule[];
  /** Proposals of a tenant that may wait for review at once. */
  readonly pendingMax: number;
  /** Proposals of a workspace that may wait for review at once; as many as of the tenant unless it says otherwise. */
  readonly pendingWorkspaceMax?: number;
  /** Whether everybody who applies a proposal must name the artifact that they reviewed. */
  readonly isHashRequired?: boolean;
  /** Whether the operator has switched proposals off. */
  readonly isOff?: boolean;
}

/** Without a matching rule: one vote by a person with the scope, or an override by an owner. */
const DEFAULT_GATE: GateRule = { quorum: 1, override: { requiredRole: 'owner' } };

/** The rule for proposals of a kind in a tenant. */
export function gateFor({ gates }: ProposalSettings, of: { readonly tenant: string; readonly kind: ArtifactKind }) {
  const matches = ({ tenant = of.tenant, kind = of.kind }: GateRule): boolean =>
    tenant === of.tenant && kind === of.kind;
  return { ...DEFAULT_GATE, ...gates.find(matches) };
}

/** Parses `CAPSTAN_PROPOSAL_GATES`, or lists its problems. */
export function readGates(text: string): { readonly gates: readonly GateRule[]; readonly problems: readonly string[] } {
  const { entries: gates, problems } = readOperatorList<GateRule>(text, { schema: GateRule });
  return { gates, problems };
}

/** How proposals are applied, and how many may wait for review. */
export const proposalSettings = defineSettings({
  variables: {
    proposals: {
      variable: 'CAPSTAN_PROPOSALS',
      meaning:
        'how proposals are applied: approval-gate or direct-rbac; off removes proposals and synthesis (approval-gate)',
    },
    proposalGates: {
      variable: 'CAPSTAN_PROPOSAL_GATES',
      meaning:
        'JSON array of gate rules; the first that matches applies: { tenant?, kind?, quorum?, requiredRole?, override?, timeoutSec? }',
    },
    proposalHash: {
      variable: 'CAPSTAN_PROPOSAL_HASH',
      meaning:
        'whether applying a proposal requires the hash of the reviewed artifact: required, or optional except for the console (optional)',
    },
    pendingProposals: {
      variable: 'CAPSTAN_SYNTHESIS_MAX_PENDING',
      meaning: 'limit of undecided proposals for each tenant (50)',
    },
    pendingWorkspaceProposals: {
      variable: 'CAPSTAN_SYNTHESIS_MAX_PENDING_WORKSPACE',
      meaning:
        'limit of undecided proposals for each workspace, so that one does not use up the limit of its tenant (20)',
    },
  },
  read: (read): { readonly proposals: ProposalSettings } => {
    const { gates, problems } = readGates(read.text('proposalGates') ?? '[]');
    read.report('proposalGates', ...problems);
    const chosen = read.oneOf('proposals', [...ACTIVATIONS, 'off'], 'approval-gate');
    const [activation, isOff] = chosen === 'off' ? (['approval-gate', true] as const) : [chosen, false];
    const pendingMax = read.integer('pendingProposals', { otherwise: 50, min: 1, max: 10_000 });
    const pendingWorkspaceMax = read.integer('pendingWorkspaceProposals', { otherwise: 20, min: 1, max: 10_000 });
    const isHashRequired = read.oneOf('proposalHash', ['optional', 'required'], 'optional') === 'required';
    return { proposals: { activation, gates, pendingMax, pendingWorkspaceMax, isHashRequired, isOff } };
  },
});

import type { Proposal } from '../../../protocol/learning/proposals.ts';
import type { ProposalFacts, ProposalRow } from './records.ts';

/** Everything of a proposal but what it proposes. Nothing else may be shown of it here. */
function frameOf(row: ProposalRow): Omit<Proposal, 'artifact'> {
  const { tenantName, principal, title, rationale, sourceRunIds, synthesizerModel, duplicateOf } = factsOf(row);
  const { approval_id: approvalId, installed_ref: installedArtifactRef } = row;
  const isApplied = row.state === 'applied' && installedArtifactRef !== null;
  return {
    id: row.proposal_id,
    kind: row.kind,
    state: row.state,
    ...(title === undefined ? {} : { title }),
    ...(rationale === undefined ? {} : { rationale }),
    provenance: { sourceRunIds: [...sourceRunIds], ...(synthesizerModel === undefined ? {} : { synthesizerModel }) },
    duplicateOf: duplicateOf ?? null,
    owner: { tenant: tenantName, ...(row.workspace === null ? {} : { workspace: row.workspace }), principal },
    activation: isApplied ? { approvalId, installedArtifactRef } : null,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
  };
}

export function factsOf({ facts }: Pick<ProposalRow, 'facts'>): ProposalFacts {
  return JSON.parse(facts) as ProposalFacts;
}

export function proposalOf(row: ProposalRow): Proposal {
  return { ...frameOf(row), artifact: JSON.parse(row.text) };
}

/** The proposal as JSON in which the artifact stands as it is kept: `1.0` stays `1.0`. */
export function proposalText(row: ProposalRow): string {
  return `${JSON.stringify(frameOf(row)).slice(0, -1)},"artifact":${row.text}}`;
}

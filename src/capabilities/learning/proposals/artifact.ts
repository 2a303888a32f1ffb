import type { Subject } from '../../../runtime/run-row.ts';
import { factsOf } from './facts.ts';
import type { ProposedArtifact } from './installers/installer.ts';
import type { ProposalRow } from './records.ts';

/**
 * The artifact of a proposal, to be installed in the workspace of the proposal and in the name of whoever decided; in
 * the name of its owner as long as nobody has.
 */
export function artifactOf(row: ProposalRow, by: Subject = ownerOf(row)): ProposedArtifact {
  const { proposal_id: proposalId, workspace, text } = row;
  return { proposalId, author: { subject: { ...by, workspace: workspace ?? undefined } }, text };
}

function ownerOf(row: ProposalRow): Subject {
  const { tenantName, principal } = factsOf(row);
  const { tenant, workspace } = row;
  return { tenant, tenantName, workspace: workspace ?? undefined, principal, issuer: 'host', lane: 'host' };
}

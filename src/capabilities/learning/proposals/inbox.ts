import type { Store } from '../../../store/store.ts';
import type { InboxSource } from '../../people/inbox/door.ts';
import { factsOf } from './document.ts';
import { ACTIVATION_SCOPE } from './gate.ts';
import { listPending, type ProposalRow } from './records.ts';

/** Pending proposals, for callers that may read proposals. */
export function pendingProposals(store: Store): InboxSource {
  return async ({ subject, scopes }, before, limit) => {
    if (!scopes.has('proposals:read')) return [];
    const rows = await store.read<ProposalRow>(listPending(subject, before, limit));
    return rows.map((row) => ({
      kind: 'proposal',
      id: row.proposal_id,
      title: factsOf(row).title || `Proposed: ${row.kind}`,
      createdAt: row.updated_at,
      link: `/console/proposals/${row.proposal_id}`,
      runId: row.run_id,
      proposalId: row.proposal_id,
      artifactHash: row.sha256,
      requiredScope: ACTIVATION_SCOPE,
    }));
  };
}

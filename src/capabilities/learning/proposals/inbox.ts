import type { Store } from '../../../store/store.ts';
import type { InboxSource } from '../../people/inbox/door.ts';
import type { InterruptLinks } from '../../people/interrupts/door.ts';
import { factsOf } from './facts.ts';
import { ACTIVATION_SCOPE } from './gate.ts';
import { listPending, type PendingRow, type ProposalRow, proposalsOfRuns } from './records.ts';

/** Pending proposals, for callers that may read proposals. */
export function pendingProposals(store: Store): InboxSource {
  const list: InboxSource['list'] = async ({ subject }, before, limit) => {
    const rows = await store.read<PendingRow>(listPending(subject, before, limit));
    return rows.map((row) => ({
      kind: 'proposal',
      id: row.proposal_id,
      title: factsOf(row).title || `Proposed: ${row.kind}`,
      createdAt: row.updated_at,
      workspace: row.workspace,
      link: consolePath(row.proposal_id),
      runId: row.run_id,
      proposalId: row.proposal_id,
      artifactHash: row.sha256,
      requiredScope: ACTIVATION_SCOPE,
    }));
  };
  return { kinds: ['proposal'], scope: 'proposals:read', list };
}

/** The gates of proposals are answered on the page of the proposal. */
export function proposalLinks(store: Store): InterruptLinks {
  return async ({ tenant }, runIds) => {
    if (runIds.length === 0) return new Map();
    const rows = await store.read<Pick<ProposalRow, 'run_id' | 'proposal_id'>>(proposalsOfRuns(tenant, runIds));
    return new Map(
      rows.map(({ run_id, proposal_id: proposalId }) => [run_id, { link: consolePath(proposalId), proposalId }]),
    );
  };
}

function consolePath(proposalId: string): string {
  return `/console/proposals/${proposalId}`;
}

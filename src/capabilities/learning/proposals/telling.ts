import type { JsonObject } from '../../../protocol/format/json.ts';
import type { FeedEvent } from '../../../protocol/operations/feed.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Unit } from '../../../store/sql.ts';
import type { FeedService } from '../../operations/feed/service.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import type { ProposalRow } from './records.ts';

export type Telling = ReturnType<typeof tellingOf>;

interface Ears {
  readonly audit: Pick<AuditService, 'record'>;
  readonly feed: Pick<FeedService, 'entries'>;
}

/** Who did what to a proposal, for the audit log and for those who watch the tenant: never what is proposed. */
export function tellingOf({ audit, feed }: Ears) {
  return {
    created: (by: Subject, row: ProposalRow): Unit => [
      ...audited(by, 'proposal.create', row, { kind: row.kind, sha256: row.sha256 }),
      ...shown('proposal.created', row),
    ],

    /** Somebody has voted; the audit log has that from the run. */
    voted: (row: ProposalRow): Unit => shown('proposal.updated', row),

    activated: (by: Subject, row: ProposalRow, details: JsonObject): Unit => [
      ...audited(by, 'proposal.apply', row, details),
      ...shown('proposal.activated', row),
    ],

    moved: (by: Subject, action: AuditAction, row: ProposalRow, details: JsonObject = {}): Unit => [
      ...audited(by, action, row, details),
      ...shown('proposal.updated', row),
    ],
  };

  function audited({ principal: actor }: Subject, action: AuditAction, row: ProposalRow, details: JsonObject): Unit {
    const { tenant, workspace, proposal_id: target } = row;
    return audit.record({ tenant, workspace: workspace ?? undefined, actor, action, target, details });
  }

  function shown(event: FeedEvent, row: ProposalRow): Unit {
    const { tenant, workspace, proposal_id: proposalId, run_id: runId, kind, state } = row;
    const facts = [
      { event, data: { proposalId, runId, kind, state } },
      { event: 'inbox.changed' as const, data: {} },
    ];
    return feed.entries({ tenant, workspace: workspace ?? undefined }, facts);
  }
}

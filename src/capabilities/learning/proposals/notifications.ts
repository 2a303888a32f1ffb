import type { JsonObject } from '../../../protocol/format/json.ts';
import type { FeedEvent } from '../../../protocol/operations/feed.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { and, type Change, changeOf } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Feed } from '../../operations/feed/door.ts';
import type { Audit } from '../../trust/audit/door.ts';
import type { ProposalRow } from './records.ts';

/** Where proposals report what happened to them. */
export interface NotificationTargets {
  readonly audit: Pick<Audit, 'entry'>;
  readonly feed: Pick<Feed, 'entries' | 'wake'>;
}

/** The audit and feed entries about a proposal. They name it, and never contain what it proposes. */
export class ProposalNotifications {
  readonly #targets: NotificationTargets;

  constructor(targets: NotificationTargets) {
    this.#targets = targets;
  }

  /** A draft was stored. */
  created(by: Subject, row: ProposalRow): Change {
    const details = { kind: row.kind, sha256: row.sha256 };
    return and(this.#auditEntry(by, 'proposal.create', row, details), this.#feedEntries('proposal.created', row));
  }

  /** Somebody voted. The audit log learns of it from the events of the run. */
  voted(row: ProposalRow): Change {
    return this.#feedEntries('proposal.updated', row);
  }

  /** The artifact was installed. */
  activated(by: Subject, row: ProposalRow, details: JsonObject): Change {
    return and(this.#auditEntry(by, 'proposal.apply', row, details), this.#feedEntries('proposal.activated', row));
  }

  /** Anything else was done to it. */
  updated(by: Subject, action: AuditAction, row: ProposalRow, details: JsonObject = {}): Change {
    return and(this.#auditEntry(by, action, row, details), this.#feedEntries('proposal.updated', row));
  }

  #auditEntry({ principal: actor }: Subject, action: AuditAction, row: ProposalRow, details: JsonObject): Change {
    const { tenant, workspace, proposal_id: target } = row;
    return this.#targets.audit.entry({ tenant, workspace: workspace ?? undefined, actor, action, target, details });
  }

  #feedEntries(event: FeedEvent, row: ProposalRow): Change {
    const { feed } = this.#targets;
    const { tenant, workspace, proposal_id: proposalId, run_id: runId, kind, state } = row;
    const facts = [
      { event, data: { proposalId, runId, kind, state } },
      { event: 'inbox.changed' as const, data: {} },
    ];
    const writes = feed.entries({ tenant, workspace: workspace ?? undefined }, facts);
    return changeOf(undefined, writes, { announce: [() => feed.wake(tenant)] });
  }
}

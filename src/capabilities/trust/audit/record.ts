import type { JsonObject } from '../../../protocol/format/json.ts';
import type { AuditOutcome } from '../../../protocol/trust/audit.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Write } from '../../../store/sql.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Ids } from '../../../system/ids.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import { insertPending } from './records.ts';

/** Something that happened and that somebody may have to answer for. */
export interface AuditRecord {
  /** The storage tenant, as every query has it. */
  readonly tenant: string;
  readonly workspace?: string | undefined;
  /** Who did it: an opaque principal, never a name or an address. */
  readonly actor: string;
  readonly action: AuditAction;
  /** The id of what it was done to. */
  readonly target?: string | undefined;
  readonly outcome?: AuditOutcome;
  readonly details?: JsonObject;
  /** When it happened, where that is not now. */
  readonly at?: number;
}

/** Nobody from outside: the host itself did it. */
export const HOST_ACTOR = 'host';

/** The action that a host records in every log that it finds when it starts. */
export const HOST_STARTED = 'host.started' satisfies AuditAction;

/** What puts a record on its way into the chain. It belongs into the transaction of what it is about. */
export function recordWrite(record: AuditRecord, { clock, ids }: { clock: Clock; ids: Ids }): Write {
  const { tenant, workspace, actor, action, target, outcome = 'success', details, at = clock.now() } = record;
  return insertPending({
    tenant,
    pending_id: ids.next(''),
    workspace: workspace ?? null,
    at,
    actor: clean(actor),
    action,
    target: target === undefined ? null : clean(target),
    outcome,
    details: details === undefined ? null : JSON.stringify(redactValue(details, clean)),
  });
}

/** Without secrets, and in text that every JSON reader takes for the same. */
function clean(text: string): string {
  return redactText(text.toWellFormed());
}

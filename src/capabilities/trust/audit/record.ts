import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Write } from '../../../store/sql.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Ids } from '../../../system/ids.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { AuditRecord } from './door.ts';
import { insertPending } from './records.ts';

/** The action that a host records in every log that it finds when it starts. */
export const HOST_STARTED = 'host.started' satisfies AuditAction;

/** Stores a record as pending; the sealer moves it into the hash chain. */
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

/** Redacts secrets and replaces lone surrogates, which JSON readers treat differently and which would change hashes. */
function clean(text: string): string {
  return redactText(text.toWellFormed());
}

import type { RunEvent } from '../../../protocol/running/events.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Append, Reaction } from '../../../runtime/append.ts';
import type { Write } from '../../../store/sql.ts';
import type { AuditRecord } from './record.ts';

/** What of an event somebody has to answer for. */
type Fact = Pick<AuditRecord, 'actor' | 'action' | 'target' | 'outcome' | 'details'>;

/** Puts what people do to runs into the audit log, in the transactions in which they do it. */
export function auditRuns(record: (record: AuditRecord) => Write[]): Reaction {
  return (append) => {
    if (append.isInherited) return [];
    const { tenant, workspace } = append.identity.subject;
    return factsOf(append).flatMap((fact) => record({ tenant, workspace, target: append.run.facts.runId, ...fact }));
  };
}

function factsOf({ events, run, identity }: Append): Fact[] {
  const [first] = events;
  if (first?.type !== 'run.started') return events.flatMap((event) => factOf(event) ?? []);
  // Who asked for a child, a fork or what a run of the host's own is about is in the audit log already.
  if (run.facts.parent || run.facts.fork || isManagement(run.facts.workflowId)) return [];
  return [{ actor: identity.subject.principal, action: 'run.create', details: { workflowId: run.facts.workflowId } }];
}

function factOf(event: RunEvent): Fact | undefined {
  const { nodeId } = event;
  switch (event.type) {
    case 'run.cancelled':
      return by(event.payload.cancelledBy, 'run.cancel', { reason: event.payload.reason });
    case 'run.paused':
    case 'capstan.pause.requested':
      return by(event.payload.pausedBy, 'run.pause', { reason: event.payload.reason });
    case 'run.resumed':
      return by(event.payload.resumedBy, 'run.resume', { reason: event.payload.reason });
    case 'interrupt.resolved':
      return by(event.payload.resolvedBy, 'interrupt.resolve', { nodeId, interruptId: event.payload.interruptId });
    case 'approval.granted':
      return by(event.payload.principal, 'gate.grant', { gateId: event.payload.gateId });
    case 'approval.rejected':
      return by(event.payload.principal, 'gate.reject', { gateId: event.payload.gateId, reason: event.payload.reason });
    case 'approval.overridden':
      return by(event.payload.principal, 'gate.override', {
        gateId: event.payload.gateId,
        reason: event.payload.reason,
      });
    case 'authorization.decided':
      return event.payload.allowed ? undefined : denial(event.payload);
    default:
      return undefined;
  }
}

/** What nobody did by name, such as a time that ran out, is in the run's own log. */
function by(actor: string | undefined, action: string, details: Record<string, string | undefined>): Fact | undefined {
  return actor === undefined ? undefined : { actor, action, details };
}

function denial({ principal, action, resource }: { principal: string; action: string; resource: string }): Fact {
  return { actor: principal, action: 'authorization.deny', outcome: 'denied', details: { action, resource } };
}

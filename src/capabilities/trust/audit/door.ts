import type { JsonObject } from '../../../protocol/format/json.ts';
import type { AuditOutcome } from '../../../protocol/trust/audit.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Unit } from '../../../store/sql.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

export { type ChainReport, verifyChains } from './whole-store.ts';

/** The audit log: who did what, in a hash chain per tenant. */
export interface Audit {
  /** The write that records an action. Commit it with the action itself, so that both happen or neither. */
  record(entry: AuditRecord): Unit;
  /** The same as a part of a change: `and(change, audit.entry({ … }))`. */
  entry(entry: AuditRecord): Change;
  /** What the HTTP edge records about requests. */
  readonly requests: RequestAudit;
}

/** The door to the audit log. */
export const Audit = door<Audit>()('audit');

/** An action that somebody is accountable for. */
export interface AuditRecord {
  /** The storage tenant, as every query has it. */
  readonly tenant: string;
  readonly workspace?: string | undefined;
  /** Who did it: an opaque principal, never a name or an address. */
  readonly actor: string;
  readonly action: AuditAction;
  /** The id of the resource. */
  readonly target?: string | undefined;
  readonly outcome?: AuditOutcome;
  readonly details?: JsonObject;
  /** When it happened, if not now. */
  readonly at?: number;
}

/** The actor of what the host does by itself. */
export const HOST_ACTOR = 'host';

/** What the HTTP edge records: uses of keys, denials, and every request if the operator asks for that. */
export interface RequestAudit {
  /** Records that a key was used, at most once in ten minutes. */
  keyUsed(caller: Caller): void;
  /** Records an answered request if every request is audited. */
  answered(caller: Caller, request: AnsweredRequest): void;
  /** Records that a scope was missing. Settles once that is stored; it never throws. */
  denied(caller: Caller, request: AuditedRequest): Promise<void>;
}

/** A request, by the path template of its route and never by the path that was sent. */
export interface AuditedRequest {
  readonly method: string;
  readonly route: string;
  readonly scope: string | undefined;
}

/** A request and how it was answered. */
export interface AnsweredRequest extends AuditedRequest {
  readonly status: number;
  readonly ms: number;
}

/** Records that a subject did something to a resource. */
export function recordBy(
  audit: Pick<Audit, 'record'>,
  { tenant, workspace, principal: actor }: Subject,
  action: AuditAction,
  target: string,
  details?: JsonObject,
): Unit {
  return audit.record({ tenant, workspace, actor, action, target, ...(details ? { details } : {}) });
}

/** The same as a part of a change: `and(change, entryBy(audit, caller.subject, 'schedule.create', scheduleId))`. */
export function entryBy(
  audit: Pick<Audit, 'entry'>,
  { tenant, workspace, principal: actor }: Subject,
  action: AuditAction,
  target: string,
  details?: JsonObject,
): Change {
  return audit.entry({ tenant, workspace, actor, action, target, ...(details ? { details } : {}) });
}

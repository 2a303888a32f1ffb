import { type Refusal, refuse } from '../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { Decision } from '../run/commands.ts';
import { type Question, type Resolver, settle } from './question.ts';

/** A gate that only certain people may open, so many of them, each under their own name. */
export interface GateData {
  readonly gateId: string;
  readonly requiredRole?: string;
  readonly requiredScope?: string;
  readonly quorum?: number;
  readonly override?: { readonly requiredRole: string };
  readonly overrideBypassesQuorum?: boolean;
  /** What exactly is approved; an answer must name it. */
  readonly artifactHash?: string;
}

const DECISIONS: readonly unknown[] = ['granted', 'rejected', 'overridden'];

export function decideGate(question: Question, gate: GateData, value: unknown, by: Resolver): Decision {
  const answer = isObject(value) ? value : {};
  const refusal = checkAnswer(gate, answer);
  if (refusal) return refusal;
  const isAllowed = answer.decision === 'overridden' ? mayOverride(gate, by) : mayDecide(gate, by);
  if (!isAllowed) return deny(question, gate, answer, by);
  const { nodeId } = question;
  const { gateId } = gate;
  const reason = typeof answer.reason === 'string' ? { reason: answer.reason } : {};
  if (answer.decision === 'rejected') {
    const rejected: NewEvent = {
      type: 'approval.rejected',
      nodeId,
      payload: { gateId, principal: by.principal, ...reason },
    };
    return [rejected, ...settle(question, { decision: 'rejected', ...reason }, by.principal)];
  }
  return grant(question, gate, answer, by);
}

/** A grant counts once for each person; the gate opens with the last one it needs. */
function grant(question: Question, gate: GateData, answer: JsonObject, by: Resolver): NewEvent[] {
  const { nodeId, interrupt } = question;
  const { gateId, quorum = 1, overrideBypassesQuorum = false } = gate;
  const { principal } = by;
  const isOverride = answer.decision === 'overridden';
  const granted = new Set([...interrupt.votes.keys(), principal]).size;
  const voted: NewEvent = isOverride
    ? { type: 'approval.overridden', nodeId, payload: { gateId, principal, reason: answer.reason as string } }
    : {
        type: 'approval.granted',
        nodeId,
        payload: { gateId, principal, quorumProgress: { granted, required: quorum } },
      };
  const isOpen = granted >= quorum || (isOverride && overrideBypassesQuorum);
  if (!isOpen) return [voted];
  return [voted, ...settle(question, { decision: isOverride ? 'overridden' : 'granted' }, principal)];
}

function checkAnswer(
  { artifactHash }: GateData,
  { decision, reason, artifactHash: named }: JsonObject,
): Refusal | undefined {
  const wrong = (field: string, message: string): Refusal =>
    refuse('INVALID_RESUME_VALUE', message, { field: `resumeValue.${field}` });
  if (!DECISIONS.includes(decision)) return wrong('decision', 'decision must be granted, rejected or overridden.');
  if (reason !== undefined && typeof reason !== 'string') return wrong('reason', 'reason must be a string.');
  if (decision === 'overridden' && !(typeof reason === 'string' && reason.trim() !== '')) {
    return wrong('reason', 'An override takes a reason.');
  }
  if (artifactHash === undefined) return undefined;
  if (typeof named !== 'string') return wrong('artifactHash', 'Name the artifactHash that you decide on.');
  if (named === artifactHash) return undefined;
  return refuse('conflict', 'What you decided on is not what is proposed now.', { artifactHash });
}

function mayDecide({ requiredRole, requiredScope }: GateData, by: Resolver): boolean {
  if (requiredRole === undefined && requiredScope === undefined) return false;
  return (
    (requiredRole === undefined || by.hasRole(requiredRole)) &&
    (requiredScope === undefined || by.hasScope(requiredScope))
  );
}

function mayOverride({ override }: GateData, by: Resolver): boolean {
  return override !== undefined && by.hasRole(override.requiredRole);
}

/** The refusal itself is on record. */
function deny({ nodeId }: Question, gate: GateData, { decision }: JsonObject, { principal }: Resolver): Decision {
  const { gateId } = gate;
  const { requiredRole, requiredScope }: Partial<GateData> = decision === 'overridden' ? { ...gate.override } : gate;
  return {
    record: [
      {
        type: 'authorization.decided',
        nodeId,
        payload: { principal, action: `approval.${decision}`, resource: gateId, allowed: false },
      },
    ],
    refusal: refuse('forbidden', 'This gate is not yours to decide.', {
      ...(requiredRole ? { roleRequired: requiredRole } : {}),
      ...(requiredScope ? { scopeRequired: requiredScope } : {}),
    }),
  };
}

import { type Refusal, refuse } from '../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { Decision } from '../run/decision.ts';
import { type Question, type Resolver, settle } from './question.ts';
import { countedVotes, EXCLUDED, exclusionOf, type SeparationRules, standingVote } from './separation.ts';

/** A governance gate: a quorum of principals with a certain role or scope must approve, each under their own name. */
export interface GateData extends SeparationRules {
  readonly gateId: string;
  readonly requiredRole?: string;
  readonly requiredScope?: string;
  /** Number of different principals that must approve; 1 by default. */
  readonly quorum?: number;
  /** Role that may open the gate despite a missing approval. */
  readonly override?: { readonly requiredRole: string };
  readonly overrideBypassesQuorum?: boolean;
  /** Hash of what is approved; an answer must repeat it, so that nobody approves a later version by accident. */
  readonly artifactHash?: string;
}

const DECISIONS: readonly unknown[] = ['granted', 'rejected', 'overridden'];

/**
 * Handles one principal's answer to a governance gate; a principal without permission is refused, and the refusal is
 * recorded.
 */
export function decideGate(question: Question, gate: GateData, value: unknown, by: Resolver): Decision {
  const answer = isObject(value) ? value : {};
  const refusal = checkAnswer(gate, answer);
  if (refusal) return refusal;
  const isAllowed = answer.decision === 'overridden' ? mayOverride(gate, by) : mayDecide(gate, by);
  if (!isAllowed) return deny(question, gate, answer, by);
  const exclusion = answer.decision === 'rejected' ? undefined : exclusionOf(question.run, gate, by);
  if (exclusion) return exclude(question, gate, answer, by, exclusion);
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

/** A principal counts once, and only an override adds to an earlier vote; the gate opens when the quorum is reached. */
function grant(question: Question, gate: GateData, answer: JsonObject, by: Resolver): NewEvent[] {
  const { run, nodeId, interrupt, now } = question;
  const { gateId, overrideBypassesQuorum = false } = gate;
  const quorum = Math.max(gate.quorum ?? 1, gate.minDistinctPeople ?? 1);
  const { principal, person } = by;
  const isOverride = answer.decision === 'overridden';
  const earlier = standingVote(interrupt, principal, now);
  if (earlier === answer.decision || (earlier !== undefined && !isOverride)) return [];
  const action = isOverride ? 'overridden' : 'granted';
  const granted = countedVotes(run, interrupt, { voter: principal, person, action, at: now }).size;
  const voted: NewEvent = isOverride
    ? { type: 'approval.overridden', nodeId, payload: { gateId, principal, reason: answer.reason as string } }
    : {
        type: 'approval.granted',
        nodeId,
        payload: { gateId, principal, quorumProgress: { granted, required: quorum } },
      };
  const isOpen = granted >= quorum || (isOverride && overrideBypassesQuorum);
  if (!isOpen) return [voted];
  return [voted, ...settle(question, { decision: action }, principal)];
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
    return wrong('reason', 'An override needs a reason.');
  }
  if (artifactHash === undefined) return undefined;
  if (typeof named !== 'string')
    return wrong('artifactHash', 'artifactHash is required: send the hash of the artifact you reviewed.');
  if (named === artifactHash) return undefined;
  return refuse(
    'conflict',
    'artifactHash does not match the current artifact. Review the current version and answer again.',
    { artifactHash },
  );
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

/** Refuses the answer of somebody who has the role but may not approve this, and records the attempt. */
function exclude(
  { nodeId }: Question,
  { gateId }: GateData,
  { decision }: JsonObject,
  { principal }: Resolver,
  reason: keyof typeof EXCLUDED,
): Decision {
  const payload = { principal, action: `approval.${decision}`, resource: gateId, allowed: false, reason };
  return {
    record: [{ type: 'authorization.decided', nodeId, payload }],
    refusal: refuse('forbidden', EXCLUDED[reason], { reason }),
  };
}

/** Refuses the answer and records the denied attempt in the log. */
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
    refusal: refuse('forbidden', 'You lack the role or scope that this gate requires.', {
      ...(requiredRole ? { roleRequired: requiredRole } : {}),
      ...(requiredScope ? { scopeRequired: requiredScope } : {}),
    }),
  };
}

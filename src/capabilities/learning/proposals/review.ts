import { decideGate, type GateData } from '../../../engine/people/governance.ts';
import { suspendNode } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import { cancelActive } from '../../../engine/run/next.ts';
import type { OpenInterrupt, Run } from '../../../engine/run/run.ts';
import { defined, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind, ProposalState } from '../../../protocol/learning/proposals.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { REVIEW } from '../../../runtime/management.ts';
import type { GateRule } from './settings.ts';

/** What people are asked to agree to: these bytes and no others. */
export interface Review {
  readonly proposalId: string;
  readonly kind: ArtifactKind;
  readonly title: string | undefined;
  readonly sha256: string;
  readonly gate: GateRule;
  /** Of the question; the protocol calls it the approval. */
  readonly approvalId: string;
  readonly at: number;
}

export const ACTIVATION_SCOPE = 'proposals:activate';

export function gateOf(run: Run): OpenInterrupt | undefined {
  return run.nodes[run.plan.node(REVIEW)!.index]!.interrupt;
}

/** Opens the gate of a proposal. A gate that came to nothing before leaves its node where it can ask again. */
export function openGate(run: Run, review: Review): NewEvent[] {
  const planned = run.plan.node(REVIEW)!;
  const { attempt, status } = run.nodes[planned.index]!;
  const begun: NewEvent = {
    type: 'node.started',
    nodeId: REVIEW,
    payload: { nodeId: REVIEW, typeId: planned.node.typeId, attempt },
  };
  const request = { kind: 'approval' as const, data: askedOf(review), timeoutMs: timeoutOf(review.gate) };
  return [...(status === 'running' ? [] : [begun]), ...suspendNode(run, REVIEW, request, review.approvalId)];
}

export function timeoutOf({ timeoutSec }: GateRule): number | undefined {
  return timeoutSec === undefined ? undefined : Math.ceil(timeoutSec * 1_000);
}

function askedOf({ proposalId, kind, title, sha256, gate }: Review): JsonObject {
  const { quorum, requiredRole, override, overrideBypassesQuorum } = gate;
  return {
    artifactId: proposalId,
    artifactType: kind,
    title: title || `Apply a proposal: ${kind}`,
    actions: ['accept', 'reject'],
    gateId: REVIEW,
    requiredScope: ACTIVATION_SCOPE,
    ...defined({ quorum, requiredRole, override, overrideBypassesQuorum }),
    artifactHash: sha256,
  };
}

/** Opens the gate, and lets whoever asked for that vote for it, if they may. */
export function openWithGrant(run: Run, review: Review, by: Resolver): NewEvent[] {
  const opened = openGate(run, review);
  const interrupt: OpenInterrupt = {
    interruptId: review.approvalId,
    kind: 'approval',
    key: REVIEW,
    requestedAt: review.at,
    data: askedOf(review),
    votes: new Map(),
  };
  const grant = { decision: 'granted', artifactHash: review.sha256 };
  const gate = interrupt.data as unknown as GateData;
  const decision = decideGate({ run, nodeId: REVIEW, interrupt }, gate, grant, by);
  return Array.isArray(decision) ? [...opened, ...decision] : opened;
}

/** The decision that lets the proposal pass, if these events do. */
export function passing(events: readonly NewEvent[]): string | undefined {
  for (const event of events) {
    if (event.type !== 'interrupt.resolved') continue;
    const { resumeValue } = event.payload;
    const decision = isObject(resumeValue) ? resumeValue.decision : undefined;
    if (decision === 'granted' || decision === 'overridden') return decision;
  }
  return undefined;
}

/** What is asked about is no longer what is proposed. */
export function voidGate(run: Run, by: string): NewEvent[] {
  const open = gateOf(run);
  if (!open) return [];
  const { interruptId, kind } = open;
  const resumeValue = { decision: 'rejected', reason: 'revised' };
  return [
    {
      type: 'interrupt.resolved',
      nodeId: REVIEW,
      payload: {
        nodeId: REVIEW,
        interruptId,
        kind,
        resumeValue,
        resolvedBy: by,
        outcome: 'rejected',
        reason: 'revised',
      },
    },
    { type: 'node.resumed', nodeId: REVIEW, payload: { nodeId: REVIEW, interruptId, resumeValue } },
  ];
}

export interface Activated {
  readonly proposalId: string;
  readonly kind: ArtifactKind;
  readonly installedArtifactRef: string;
  readonly approvalId: string | null;
}

/** The end of a proposal's run that was let pass by its gate. */
export function passGate(activated: Activated, decision: string): NewEvent[] {
  return [
    { type: 'proposal.activated', payload: { ...activated } },
    { type: 'node.completed', nodeId: REVIEW, payload: { nodeId: REVIEW, outputs: { decision } } },
    completed('applied'),
  ];
}

/** The end of a proposal's run where no gate is asked. */
export function passDirectly(run: Run, activated: Activated): NewEvent[] {
  return [
    ...cancelActive(run, 'applied'),
    { type: 'proposal.activated', payload: { ...activated } },
    completed('applied'),
  ];
}

/** The end of a proposal's run that came to nothing; a gate that is open goes with it. */
export function close(run: Run, state: ProposalState): NewEvent[] {
  return [...cancelActive(run, state), completed(state)];
}

function completed(state: ProposalState): NewEvent {
  return { type: 'run.completed', payload: { outputs: { state } } };
}

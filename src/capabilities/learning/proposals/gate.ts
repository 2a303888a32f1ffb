import { decideGate, type GateData } from '../../../engine/people/governance.ts';
import { expireInterrupt, suspendNode } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import { identify } from '../../../engine/people/separation.ts';
import { cancelActive } from '../../../engine/run/next.ts';
import type { OpenInterrupt, Run } from '../../../engine/run/run.ts';
import { defined, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind, ProposalState } from '../../../protocol/learning/proposals.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { REVIEW } from '../../../runtime/management-workflows.ts';
import type { GateRule } from './settings.ts';

/** What people are asked to approve: exactly these bytes. */
export interface GateRequest {
  readonly proposalId: string;
  readonly kind: ArtifactKind;
  readonly title: string | undefined;
  readonly sha256: string;
  readonly rule: GateRule;
  /** Id of the interrupt, which the protocol calls the approval. */
  readonly approvalId: string;
  readonly at: number;
}

/** The scope that a vote on a proposal takes. */
export const ACTIVATION_SCOPE = 'proposals:activate';

/** The open gate of a proposal's run. */
export function gateOf(run: Run): OpenInterrupt | undefined {
  return run.nodes[run.plan.node(REVIEW)!.index]!.interrupt;
}

/** How long the gate stays open; undefined means until somebody decides. */
export function timeoutOf({ timeoutSec }: GateRule): number | undefined {
  return timeoutSec === undefined ? undefined : Math.ceil(timeoutSec * 1_000);
}

/** Whether a gate is still open in the log although its time is up. */
export function isOverdue({ expiresAt = Number.POSITIVE_INFINITY }: OpenInterrupt, now: number): boolean {
  return expiresAt <= now;
}

/**
 * Opens the gate of a proposal, after closing one whose time is up. The person who asks for it votes for it at once, if
 * they may vote.
 */
export function openGate(run: Run, request: GateRequest, by: Resolver): NewEvent[] {
  const overdue = gateOf(run) ? expireInterrupt(run, REVIEW) : [];
  const vote = voteFor(run, request, by);
  return [...overdue, ...askForApproval(run, request), ...vote];
}

/** A gate that was closed without approval leaves its node running, so the node starts only once. */
function askForApproval(run: Run, request: GateRequest): NewEvent[] {
  const planned = run.plan.node(REVIEW)!;
  const { attempt, status } = run.nodes[planned.index]!;
  const isStarted = status === 'running' || status === 'suspended';
  const started: NewEvent = {
    type: 'node.started',
    nodeId: REVIEW,
    payload: { nodeId: REVIEW, typeId: planned.node.typeId, attempt },
  };
  const question = { kind: 'approval' as const, data: dataOf(request), timeoutMs: timeoutOf(request.rule) };
  return [...(isStarted ? [] : [started]), ...suspendNode(run, REVIEW, question, request.approvalId)];
}

function dataOf({ proposalId, kind, title, sha256, rule }: GateRequest): JsonObject {
  const { quorum, requiredRole, override, overrideBypassesQuorum } = rule;
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

function voteFor(run: Run, request: GateRequest, by: Resolver): readonly NewEvent[] {
  const interrupt: OpenInterrupt = {
    interruptId: request.approvalId,
    kind: 'approval',
    key: REVIEW,
    requestedAt: request.at,
    data: dataOf(request),
    votes: new Map(),
  };
  const grant = { decision: 'granted', artifactHash: request.sha256 };
  const gate = interrupt.data as JsonObject & GateData;
  const decision = decideGate({ run, nodeId: REVIEW, interrupt, now: request.at }, gate, grant, by);
  return Array.isArray(decision) ? [...identify(run, REVIEW, by), ...decision] : [];
}

/** The decision by which these events approve the proposal; undefined if they do not. */
export function approvalIn(events: readonly NewEvent[]): string | undefined {
  for (const event of events) {
    if (event.type !== 'interrupt.resolved') continue;
    const { resumeValue } = event.payload;
    const decision = isObject(resumeValue) ? resumeValue.decision : undefined;
    if (decision === 'granted' || decision === 'overridden') return decision;
  }
  return undefined;
}

/** Closes an open gate because the artifact that it asked about was revised. */
export function closeRevisedGate(run: Run, by: string): NewEvent[] {
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

/** The payload of `proposal.activated`. */
export interface ActivatedProposal {
  readonly proposalId: string;
  readonly kind: ArtifactKind;
  readonly installedArtifactRef: string;
  readonly approvalId: string | null;
}

/** Ends the run of a proposal that its gate approved. */
export function endApproved(activated: ActivatedProposal, decision: string): NewEvent[] {
  return [
    { type: 'proposal.activated', payload: { ...activated } },
    { type: 'node.completed', nodeId: REVIEW, payload: { nodeId: REVIEW, outputs: { decision } } },
    completed('applied'),
  ];
}

/** Ends the run of a proposal that is applied without a gate. */
export function endAppliedDirectly(run: Run, activated: ActivatedProposal): NewEvent[] {
  return [
    ...cancelActive(run, 'applied'),
    { type: 'proposal.activated', payload: { ...activated } },
    completed('applied'),
  ];
}

/** Ends the run of a proposal that is not applied; an open gate is cancelled with it. */
export function endUnapplied(run: Run, state: ProposalState): NewEvent[] {
  return [...cancelActive(run, state), completed(state)];
}

function completed(state: ProposalState): NewEvent {
  return { type: 'run.completed', payload: { outputs: { state } } };
}

import { expireInterrupt } from '../../../engine/people/interrupts.ts';
import type { Resolver } from '../../../engine/people/question.ts';
import type { Decision } from '../../../engine/run/decision.ts';
import { isTerminal, type Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { and, type Change, changeOf, OUTDATED, unchanged, withResult } from '../../../runtime/change.ts';
import { REVIEW } from '../../../runtime/management-workflows.ts';
import { type MovedRun, moveRun } from '../../../runtime/move-run.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { Host } from '../../capability.ts';
import { type ManagementAnswer, resolverOf } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import { artifactOf } from './artifact.ts';
import { factsOf } from './facts.ts';
import {
  type ActivatedProposal,
  approvalIn,
  endAppliedDirectly,
  endApproved,
  type GateRequest,
  gateOf,
  isOverdue,
  openGate,
  timeoutOf,
} from './gate.ts';
import { insertInstalled } from './installation-records.ts';
import type { Installers } from './installers/index.ts';
import type { Installation, ProposedArtifact } from './installers/installer.ts';
import { moveProposal, type ProposalDecision } from './moves.ts';
import { type NamedArtifact, refuseOtherHash, refuseUnnamed } from './named-artifact.ts';
import type { ProposalNotifications } from './notifications.ts';
import {
  type AuthorRow,
  findProposal,
  findProposalOfRun,
  listAuthors,
  type ProposalRow,
  updateProposal,
} from './records.ts';
import { malformed, refuseMove, stale } from './rules.ts';
import { gateFor, type ProposalSettings } from './settings.ts';
import type { ProposalViews } from './views.ts';

/** The result of applying a proposal: it is installed, or its gate waits for votes. */
export type AppliedProposal =
  | { readonly installedArtifactRef: string }
  | { readonly proposalId: string; readonly state: string; readonly approvalId: string };

/** Kind of the work item that closes a gate when its time is up. */
export const GATE_TIMEOUT = 'proposal-gate';

/** An installation that has passed every check and is ready to be committed. */
interface PreparedInstallation {
  readonly row: ProposalRow;
  readonly by: Subject;
  readonly ref: string;
  readonly installation: Change<Installation>;
}

/** What activation works with. */
interface ActivationParts {
  readonly settings: ProposalSettings;
  readonly installers: Installers;
  readonly notifications: ProposalNotifications;
  readonly views: ProposalViews;
}

/**
 * Puts proposals into use.
 *
 * P1. What is installed is the revision that was stored last, and that the gate asked about.
 * P2. The vote that opens the gate, the installation, the state, the events and the audit entry are one change.
 * P3. Nobody who wrote a part of the artifact can approve the proposal.
 * P4. Nobody applies an artifact other than the one that they named, or, if they named none, that they saw last.
 */
export class Activation {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #parts: ActivationParts;

  constructor(host: Pick<Host, 'runtime'>, parts: ActivationParts) {
    this.#host = host;
    this.#parts = parts;
  }

  /** Installs the artifact of a proposal, or opens its gate where people have to approve first. */
  async apply(
    caller: Caller,
    proposalId: string,
    named: NamedArtifact = {},
  ): Promise<Change<AppliedProposal> | Refusal> {
    const [row] = await this.#store.read<ProposalRow>(findProposal(caller.subject, proposalId));
    if (!row) return NOT_FOUND;
    const { tenant, run_id: runId } = row;
    const apply = async (run: Run, current: ProposalRow): Promise<ProposalDecision<AppliedProposal>> => {
      const over = refuseOtherHash(current, named) ?? decidedBefore(current);
      if (over) return over;
      const unseen = refuseUnnamed(current, named) ?? (await this.#parts.views.refuseUnseen(caller, current, named));
      const prepared = unseen ?? (await this.#prepare(current, caller.subject));
      if (isRefusal(prepared)) return prepared;
      return this.#parts.settings.activation === 'direct-rbac'
        ? this.#applyDirectly(run, prepared)
        : this.#askGate(run, prepared, resolverOf(caller));
    };
    return (
      refuseOtherHash(row, named) ??
      decidedBefore(row) ??
      moveProposal(this.#host.runtime, { from: { tenant }, runId }, apply)
    );
  }

  /** Decides an answer to the gate. The vote that approves the proposal also installs it. */
  decideVote(answer: ManagementAnswer): Promise<Change<MovedRun> | Refusal> {
    return moveProposal(this.#host.runtime, answer, (run, row) => this.#vote(answer, run, row));
  }

  /** Closes the gate if its time is up; the result is when to look again. Silence is never approval. */
  async expireGate(tenant: string, runId: string): Promise<Change<number | undefined> | Refusal> {
    const now = this.#now;
    let dueAgainAt: number | undefined;
    const moved = await moveRun(this.#host.runtime, { tenant }, runId, (run) => {
      const open = isTerminal(run) ? undefined : gateOf(run);
      if (open && isOverdue(open, now)) return expireInterrupt(run, REVIEW);
      dueAgainAt = open?.expiresAt;
      return NOTHING_OVERDUE;
    });
    if (moved === NOTHING_OVERDUE) return unchanged(dueAgainAt);
    return isRefusal(moved) ? moved : withResult(moved, () => undefined);
  }

  /** What would keep the proposal from being applied now, whoever asks. */
  async obstacle(row: ProposalRow): Promise<Refusal | undefined> {
    const installation = await this.#installationOf(row, artifactOf(row));
    return isRefusal(installation) ? installation : undefined;
  }

  get #store() {
    return this.#host.runtime.store;
  }

  get #now(): number {
    return this.#host.runtime.clock.now();
  }

  /**
   * Checks that the artifact is valid, that it can be installed, and that what it replaces is still what the proposal was
   * made for. The last is read after the installation was decided: its expectations fail if that changes later.
   */
  async #installationOf(
    { kind, base }: ProposalRow,
    artifact: ProposedArtifact,
  ): Promise<Change<Installation> | Refusal> {
    const installer = this.#parts.installers[kind];
    const problems = await installer.check(artifact);
    if (problems.length > 0) return malformed(problems);
    const installation = await installer.install(artifact);
    const current = await installer.current(artifact);
    return current === base ? installation : stale(current);
  }

  async #prepare(row: ProposalRow, by: Subject): Promise<PreparedInstallation | Refusal> {
    const installation = await this.#installationOf(row, artifactOf(row, by));
    if (!isRefusal(installation)) return { row, by, installation, ref: this.#host.runtime.ids.next('art-') };
    // What stands in the way may be this very proposal, applied by somebody else in between.
    const [now] = await this.#store.read<ProposalRow>(findProposalOfRun(row.tenant, row.run_id));
    return now?.version === row.version ? installation : OUTDATED;
  }

  /** Everybody who contributed to the text is its author, whoever came last. */
  async #isOwnWork({ tenant, proposal_id }: ProposalRow, { principal, person }: Resolver): Promise<boolean> {
    const authors = await this.#store.read<AuthorRow>(listAuthors(tenant, proposal_id));
    const names: readonly (string | null)[] = person === undefined ? [principal] : [principal, person];
    return authors.some(({ author, author_principal }) => names.includes(author) || names.includes(author_principal));
  }

  #applyDirectly(run: Run, prepared: PreparedInstallation): ProposalDecision<AppliedProposal> {
    return {
      events: endAppliedDirectly(run, activatedBy(prepared, null)),
      rest: ({ at }) => this.#install(prepared, null, at),
    };
  }

  /** Opens the gate unless it is open. The caller votes for the proposal, unless they wrote a part of it. */
  async #askGate(run: Run, prepared: PreparedInstallation, by: Resolver): Promise<ProposalDecision<AppliedProposal>> {
    const { row } = prepared;
    const pending = (approvalId: string): AppliedProposal => {
      return { proposalId: row.proposal_id, state: row.state, approvalId };
    };
    const open = gateOf(run);
    const request = this.#gateRequestFor(row);
    if (open && !isOverdue(open, request.at)) return unchanged(pending(open.interruptId));
    const { approvalId } = request;
    const events = openGate(run, request, (await this.#isOwnWork(row, by)) ? NOBODY : by);
    const approval = approvalIn(events);
    if (approval === undefined) {
      return { events, rest: ({ at }) => withResult(this.#openGate(prepared, request, at), () => pending(approvalId)) };
    }
    return {
      events: [...events, ...endApproved(activatedBy(prepared, approvalId), approval)],
      rest: ({ at }) => this.#install(prepared, approvalId, at),
    };
  }

  async #vote(answer: ManagementAnswer, run: Run, row: ProposalRow): Promise<ProposalDecision<MovedRun>> {
    const { value, by, subject, decide } = answer;
    const isOwnVote = isGrant(value) && (await this.#isOwnWork(row, by));
    const decision = isOwnVote ? refuseOwnVote(by) : await decide(run);
    const approval = Array.isArray(decision) ? approvalIn(decision) : undefined;
    if (!Array.isArray(decision) || approval === undefined) {
      const isRepeated = Array.isArray(decision) && decision.length === 0;
      const voted = isRepeated ? unchanged(undefined) : this.#parts.notifications.voted(row);
      return { events: decision, rest: (moved) => withResult(voted, () => moved) };
    }
    const prepared = subject ? await this.#prepare(row, subject) : SIGN_IN;
    if (isRefusal(prepared)) return prepared;
    const approvalId = gateOf(run)!.interruptId;
    return {
      events: [...decision, ...endApproved(activatedBy(prepared, approvalId), approval)],
      rest: (moved) => withResult(this.#install(prepared, approvalId, moved.at), () => moved),
    };
  }

  #gateRequestFor(row: ProposalRow): GateRequest {
    const { tenantName, title } = factsOf(row);
    const { proposal_id: proposalId, kind, sha256 } = row;
    const rule = gateFor(this.#parts.settings, { tenant: tenantName, kind });
    const approvalId = this.#host.runtime.ids.next('int-');
    return { proposalId, kind, title, sha256, rule, approvalId, at: this.#now };
  }

  #openGate({ row, by }: PreparedInstallation, { rule, approvalId, sha256 }: GateRequest, at: number): Change {
    const { tenant, run_id: payload } = row;
    const timeoutMs = timeoutOf(rule);
    const work = { workId: `${GATE_TIMEOUT}:${approvalId}`, kind: GATE_TIMEOUT, tenant, payload };
    const timeout = timeoutMs === undefined ? [] : [ensureWork({ ...work, dueAt: at + timeoutMs })];
    return and(
      changeOf(undefined, [updateProposal(row), ...timeout], { retryOn: ['proposal'] }),
      this.#parts.notifications.updated(by, 'proposal.gate.open', row, { approvalId, sha256 }),
    );
  }

  #install(prepared: PreparedInstallation, approvalId: string | null, at: number): Change<AppliedProposal> {
    const { row, by, ref, installation } = prepared;
    const { tenant, workspace, kind, proposal_id, text, sha256 } = row;
    const { undo, replaces = null } = installation.result;
    const applied: ProposalRow = {
      ...row,
      state: 'applied',
      approval_id: approvalId,
      installed_ref: ref,
      updated_at: at,
    };
    const installed = insertInstalled({
      ref,
      tenant,
      workspace,
      kind,
      proposal_id,
      text,
      sha256,
      replaces,
      undo: JSON.stringify(undo),
      installed_by: by.principal,
      installed_at: at,
    });
    const details = { installedArtifactRef: ref, sha256, approvalId };
    return and(
      changeOf({ installedArtifactRef: ref }, [updateProposal(applied), installed], { retryOn: ['proposal'] }),
      installation,
      this.#parts.notifications.activated(by, applied, details),
    );
  }
}

/** Tells `moveRun` to append nothing. */
const NOTHING_OVERDUE = refuse('conflict', 'No gate is overdue.');

/** Interrupt tokens cannot answer gates, so every vote has a signed-in person behind it. */
const SIGN_IN = refuse('forbidden', 'Sign in to vote on a proposal. A token is not enough.');

/** A resolver without any right to vote. */
const NOBODY: Resolver = {
  principal: 'nobody',
  mayNameVoters: false,
  hasScope: () => false,
  hasRole: () => false,
  hasGroup: () => false,
};

/** The answer to `apply` where the proposal is applied, rejected or archived already. */
function decidedBefore(row: ProposalRow): Change<AppliedProposal> | Refusal | undefined {
  if (row.state !== 'applied' || row.uninstalled_at !== null) return refuseMove(row, 'applied');
  return unchanged({ installedArtifactRef: row.installed_ref! });
}

function activatedBy({ row, ref }: PreparedInstallation, approvalId: string | null): ActivatedProposal {
  return { proposalId: row.proposal_id, kind: row.kind, installedArtifactRef: ref, approvalId };
}

/** An override is no grant: it takes a role and a reason, and the log shows that it was one. */
function isGrant(value: unknown): boolean {
  return isObject(value) && value.decision === 'granted';
}

function refuseOwnVote(by: Resolver): Decision {
  const payload = { principal: by.principal, action: 'approval.granted', resource: REVIEW, allowed: false };
  return {
    record: [{ type: 'authorization.decided', nodeId: REVIEW, payload: { ...payload, reason: 'own-revision' } }],
    refusal: refuse('forbidden', 'You wrote a part of this artifact, so somebody else has to approve it.', {
      reason: 'own-revision',
    }),
  };
}

import { isTerminal, type Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { Proposal } from '../../../protocol/learning/proposals.ts';
import { and, type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Host } from '../../capability.ts';
import type { AnswerDecider } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import { Activation, type AppliedProposal } from './activation.ts';
import { artifactOf } from './artifact.ts';
import { type OpenGate, outcomeOf, type ProposalDetails } from './document.ts';
import type { Draft, ProposalOutcome, Proposals } from './door.ts';
import { draftProposal } from './drafting.ts';
import { factsOf } from './facts.ts';
import { closeRevisedGate, endUnapplied, gateOf } from './gate.ts';
import {
  findInstallation,
  type Installation,
  type InstalledRow,
  type InstalledSummaryRow,
  listInstalled,
  listInstalledSince,
  markUninstalled,
  summarizeInstalled,
} from './installation-records.ts';
import { type Installers, type InstallTargets, installersFor } from './installers/index.ts';
import { moveProposal, type ProposalDecision } from './moves.ts';
import type { NamedArtifact } from './named-artifact.ts';
import { type NotificationTargets, ProposalNotifications } from './notifications.ts';
import {
  findProposal,
  insertRevision,
  listProposals,
  listRevisions,
  measureRevisions,
  type ProposalFilter,
  type ProposalRow,
  type RevisionRow,
  updateProposal,
} from './records.ts';
import { type Revision, redacted, refuseSecrets, revised, withFacts } from './revisions.ts';
import { type HistorySize, refuseMoreRevisions, refuseMove } from './rules.ts';
import type { ProposalSettings } from './settings.ts';
import { ProposalViews } from './views.ts';

/** The services that proposals use. */
interface ProposalNeeds extends InstallTargets, NotificationTargets {}

/** Proposals, as people read, revise, apply, reject, archive and undo them. */
export class ProposalService implements Proposals {
  /** Applying proposals, and the votes on them. */
  readonly activation: Activation;
  /** Who has seen which artifact. */
  readonly views: ProposalViews;
  readonly #host: Pick<Host, 'runtime'>;
  readonly #settings: ProposalSettings;
  readonly #installers: Installers;
  readonly #notifications: ProposalNotifications;

  constructor(host: Pick<Host, 'runtime'>, needs: ProposalNeeds, settings: ProposalSettings) {
    this.#host = host;
    this.#settings = settings;
    this.#installers = installersFor(needs, host.runtime);
    this.#notifications = new ProposalNotifications(needs);
    this.views = new ProposalViews(host.runtime);
    const parts = { settings, installers: this.#installers, notifications: this.#notifications, views: this.views };
    this.activation = new Activation(host, parts);
  }

  /** Votes on proposals are answers to the gates of their management runs. */
  get answerDecider(): AnswerDecider {
    return { workflowId: 'capstan-proposal', decide: (answer) => this.activation.decideVote(answer) };
  }

  draft(owner: Subject, draft: Draft): Promise<Change<Proposal> | Refusal> {
    const { pendingMax, pendingWorkspaceMax = pendingMax } = this.#settings;
    const pending = { tenant: pendingMax, workspace: pendingWorkspaceMax };
    const parts = { installers: this.#installers, notifications: this.#notifications, pending };
    return draftProposal(this.#host.runtime, parts, owner, draft);
  }

  /** A proposal with its latest revision. */
  async find(from: Visibility, proposalId: string): Promise<ProposalRow | Refusal> {
    const [row] = await this.#store.read<ProposalRow>(findProposal(from, proposalId));
    return row ?? NOT_FOUND;
  }

  list(from: Visibility, filter: ProposalFilter, limit: number): Promise<ProposalRow[]> {
    return this.#store.read<ProposalRow>(listProposals(from, filter, limit));
  }

  /** Everything that helps a person to decide about a proposal. */
  async details(from: Visibility, proposalId: string): Promise<ProposalDetails | Refusal> {
    const row = await this.find(from, proposalId);
    if (isRefusal(row)) return row;
    const revisions = await this.#store.read<RevisionRow>(listRevisions(row.tenant, proposalId));
    const isOpen = refuseMove(row, 'applied') === undefined;
    const obstacle = isOpen ? await this.activation.obstacle(row) : undefined;
    const isValid = isOpen && obstacle?.status !== 422;
    const replaced = isValid ? await this.#installers[row.kind].replaced?.(artifactOf(row)) : undefined;
    const preview = await this.#previewOf(row, revisions[0]);
    return { row, revisions, gate: await this.#openGateOf(row), obstacle, preview, replaced };
  }

  /** Changes what is proposed, never what is installed. An open gate is closed: it asked about another text. */
  async revise(caller: Caller, proposalId: string, revision: Revision): Promise<Change<ProposalRow> | Refusal> {
    const row = await this.find(caller.subject, proposalId);
    if (isRefusal(row)) return row;
    const refusal = refuseMove(row, 'revised') ?? refuseSecrets(revision);
    return refusal ?? this.#move(row, (run, current) => this.#revision(caller, revision, run, current));
  }

  /** Installs the artifact of a proposal, or opens its gate where people have to approve first. */
  apply(caller: Caller, proposalId: string, named?: NamedArtifact): Promise<Change<AppliedProposal> | Refusal> {
    const isHashRequired = this.#settings.isHashRequired || named?.isHashRequired;
    return this.activation.apply(caller, proposalId, { ...named, isHashRequired });
  }

  async outcome(from: Visibility, proposalId: string): Promise<ProposalOutcome | undefined> {
    const row = await this.find(from, proposalId);
    return isRefusal(row) ? undefined : outcomeOf(row);
  }

  /** Rejects a proposal. The same evidence is not proposed again or, if it is meant so, no evidence of that habit. */
  async reject(
    { subject }: Caller,
    proposalId: string,
    reason: string | undefined,
    isNeverAgain = false,
  ): Promise<Change<ProposalRow> | Refusal> {
    const row = await this.find(subject, proposalId);
    if (isRefusal(row)) return row;
    const decidedBefore = (now: ProposalRow): Change<ProposalRow> | Refusal | undefined =>
      now.state === 'rejected' ? unchanged(now) : refuseMove(now, 'rejected');
    const reject = (run: Run, current: ProposalRow): ProposalDecision<ProposalRow> => {
      const rejection = { rejectReason: redacted(reason), rejectedAt: this.#now, isNeverAgain };
      const next = withFacts(this.#inState(current, 'rejected'), rejection);
      const details = { ...(reason ? { reason } : {}), ...(isNeverAgain ? { never: true } : {}) };
      const notification = this.#notifications.updated(subject, 'proposal.reject', next, details);
      return (
        decidedBefore(current) ?? {
          events: endUnapplied(run, 'rejected'),
          rest: () => and(updated(next), notification),
        }
      );
    };
    return decidedBefore(row) ?? this.#move(row, reject);
  }

  /** Archives a proposal. What it installed must be uninstalled first. */
  async archive({ subject }: Caller, proposalId: string): Promise<Change<ProposalRow> | Refusal> {
    const row = await this.find(subject, proposalId);
    if (isRefusal(row)) return row;
    const archived = (now: ProposalRow): Change<ProposalRow> => {
      const next = this.#inState(now, 'archived');
      return and(updated(next), this.#notifications.updated(subject, 'proposal.archive', next));
    };
    const decidedBefore = (now: ProposalRow): Change<ProposalRow> | Refusal | undefined => {
      if (now.state === 'archived') return unchanged(now);
      // The run of a proposal that was applied or rejected has ended, and may be gone.
      const isRunOver = now.state === 'applied' || now.state === 'rejected';
      return refuseMove(now, 'archived') ?? (isRunOver ? archived(now) : undefined);
    };
    const archive = (run: Run, current: ProposalRow): ProposalDecision<ProposalRow> =>
      decidedBefore(current) ?? { events: endUnapplied(run, 'archived'), rest: () => archived(current) };
    return decidedBefore(row) ?? this.#move(row, archive);
  }

  installed(from: Visibility, before: string | undefined, limit: number): Promise<InstalledRow[]> {
    return this.#store.read<InstalledRow>(listInstalled(from, { before }, limit));
  }

  /** What `installed` has, without the texts. */
  installedSummaries(from: Visibility, before: string | undefined, limit: number): Promise<InstalledSummaryRow[]> {
    return this.#store.read<InstalledSummaryRow>(summarizeInstalled(from, before, limit));
  }

  async installation(from: Visibility, proposalId: string): Promise<Installation | undefined> {
    const [row] = await this.#store.read<Installation>(findInstallation(from, proposalId));
    return row;
  }

  installedSince(at: number, after: string, limit: number): Promise<Installation[]> {
    return this.#store.read<Installation>(listInstalledSince(at, after, limit));
  }

  /** An artifact that a proposal installed and nobody has uninstalled. */
  async findInstalled(from: Visibility, ref: string): Promise<InstalledRow | Refusal> {
    const [row] = await this.#store.read<InstalledRow>(listInstalled(from, { ref }, 1));
    return row ?? NOT_FOUND;
  }

  /** Uninstalls what a proposal installed; what it replaced is restored. */
  async uninstall({ subject }: Caller, ref: string): Promise<Change | Refusal> {
    const installed = await this.findInstalled(subject, ref);
    if (isRefusal(installed)) return installed;
    const row = await this.find(subject, installed.proposal_id);
    if (isRefusal(row)) return row;
    const { author } = artifactOf(row, subject);
    return and(
      changeOf(undefined, [markUninstalled(installed, this.#now)], { refusals: { artifact: NOT_FOUND } }),
      await this.#installers[installed.kind].uninstall(author, JSON.parse(installed.undo)),
      this.#notifications.updated(subject, 'proposal.uninstall', row, { installedArtifactRef: ref }),
    );
  }

  get #store() {
    return this.#host.runtime.store;
  }

  get #now(): number {
    return this.#host.runtime.clock.now();
  }

  #move<T>(
    { tenant, run_id: runId }: ProposalRow,
    decide: (run: Run, row: ProposalRow) => ProposalDecision<T> | Promise<ProposalDecision<T>>,
  ): Promise<Change<T> | Refusal> {
    return moveProposal(this.#host.runtime, { from: { tenant }, runId }, decide);
  }

  async #revision(
    caller: Caller,
    revision: Revision,
    run: Run,
    row: ProposalRow,
  ): Promise<ProposalDecision<ProposalRow>> {
    const { subject: by } = caller;
    const refusal = refuseMove(row, 'revised') ?? (await this.#refuseLength(row, revision));
    if (refusal) return refusal;
    const context = { by, at: this.#now, installers: this.#installers };
    const outcome = await revised(row, revision, context);
    if (isRefusal(outcome)) return outcome;
    const { next, revision: written } = outcome;
    const details = { sha256: next.sha256, revision: next.revision };
    return {
      events: closeRevisedGate(run, by.principal),
      rest: () =>
        and(
          updated(next, insertRevision(written), ...this.views.writes(caller, [next])),
          this.#notifications.updated(by, 'proposal.revise', next, details),
        ),
    };
  }

  async #refuseLength(row: ProposalRow, { artifactText = row.text }: Revision): Promise<Refusal | undefined> {
    const [size] = await this.#store.read<HistorySize>(measureRevisions(row.tenant, row.proposal_id));
    return refuseMoreRevisions(size!, artifactText);
  }

  #inState(row: ProposalRow, state: ProposalRow['state']): ProposalRow {
    return { ...row, state, updated_at: this.#now };
  }

  /** The preview that synthesis made is of the draft, so it does not hold for a revision. */
  async #previewOf(row: ProposalRow, drafted: RevisionRow | undefined): Promise<unknown> {
    const preview = await this.#installers[row.kind].preview?.(artifactOf(row));
    return preview ?? (row.sha256 === drafted?.sha256 ? factsOf(row).preview : undefined);
  }

  async #openGateOf({ tenant, run_id }: ProposalRow): Promise<OpenGate | undefined> {
    return this.#host.runtime.reader.view({ tenant }, run_id, ({ run }) => {
      const open = isTerminal(run) ? undefined : gateOf(run);
      if (!open) return undefined;
      const { interruptId: approvalId, requestedAt, expiresAt, data, votes } = open;
      return { approvalId, requestedAt, expiresAt, data, grantedBy: [...votes.keys()] };
    });
  }
}

/** Stores a changed proposal, unless somebody else changed it since it was read. */
function updated(next: ProposalRow, ...writes: Unit): Change<ProposalRow> {
  return changeOf(next, [updateProposal(next), ...writes], { retryOn: ['proposal'] });
}

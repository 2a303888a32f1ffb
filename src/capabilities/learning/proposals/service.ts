import { isTerminal, type Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { unchanged } from '../../../runtime/change.ts';
import { command, commitUnless } from '../../../runtime/command.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { FeedService } from '../../operations/feed/service.ts';
import type { AnswerDecider } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import { Activation, candidateOf } from './activation.ts';
import { factsOf } from './document.ts';
import { drafting } from './drafting.ts';
import { installersOf, type Places } from './installers/index.ts';
import {
  findProposal,
  type InstalledRow,
  insertRevision,
  listInstalled,
  listProposals,
  listRevisions,
  markUninstalled,
  measureRevisions,
  moveProposal,
  type ProposalFilter,
  type ProposalRow,
  proposalsOfRuns,
  type RevisionRow,
} from './records.ts';
import { close, gateOf, voidGate } from './review.ts';
import { clean, type Revision, refuseSecrets, revised, withFacts } from './revising.ts';
import { type HistorySize, LOOK_AGAIN, refuseMoreRevisions, refuseMove, retrying } from './rules.ts';
import { tellingOf } from './telling.ts';
import { pendingSource } from './waiting.ts';

export type { Draft, Drafted, Evidence } from './drafting.ts';
export { type ProposalSettings, readGates } from './settings.ts';

export type ProposalService = ReturnType<typeof proposalService>;

interface Uses extends Places {
  readonly audit: Pick<AuditService, 'record'>;
  readonly feed: Pick<FeedService, 'entries' | 'wake'>;
}

/** What a proposal has beside what everybody is shown. */
export interface SideRecord {
  readonly row: ProposalRow;
  readonly revisions: readonly RevisionRow[];
  readonly gate: OpenGate | undefined;
  /** What would be in the way if somebody applied it now. */
  readonly obstacle: Refusal | undefined;
  /** What would come of it as it is now. */
  readonly preview: unknown;
  /** The text of what it would take the place of, while it may be applied. */
  readonly replaced: string | undefined;
}

export interface OpenGate {
  readonly approvalId: string;
  readonly requestedAt: number;
  readonly expiresAt: number | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly grantedBy: readonly string[];
}

type Also = (row: ProposalRow) => Unit;

/** What agents have learnt, and what people make of it. */
export function proposalService(host: Host, uses: Uses) {
  const { runtime } = host;
  const { store, clock } = runtime;
  const installers = installersOf(uses, store);
  const telling = tellingOf(uses);
  const activation = new Activation(host, installers, telling);
  const answerDecider: AnswerDecider = {
    workflowId: 'capstan-proposal',
    decide: async (answer) => {
      const outcome = await activation.decide({ ...answer, also: () => [] });
      return isRefusal(outcome) ? outcome : unchanged(outcome);
    },
  };

  return {
    /** Keeps a draft, together with whatever else is to be written. Nothing happens because of it. */
    draft: drafting(host, installers, telling),

    answerDecider,

    find,

    list: (from: Visibility, filter: ProposalFilter, limit: number): Promise<ProposalRow[]> =>
      store.read<ProposalRow>(listProposals(from, filter, limit)),

    async sideRecord(from: Visibility, proposalId: string): Promise<SideRecord | Refusal> {
      const row = await find(from, proposalId);
      if (isRefusal(row)) return row;
      const revisions = await store.read<RevisionRow>(listRevisions(row.tenant, proposalId));
      const isOpen = refuseMove(row, 'applied') === undefined;
      const obstacle = isOpen ? await activation.obstacle(row) : undefined;
      const fits = isOpen && obstacle?.status !== 422;
      const replaced = fits ? await installers[row.kind].replaced?.(candidateOf(row)) : undefined;
      const preview = await previewOf(row, revisions[0]);
      return { row, revisions, gate: await openGate(row), obstacle, preview, replaced };
    },

    /** Changes what is proposed, and never what is in use. A gate that is open was about something else, and closes. */
    revise: (
      { subject: by }: Caller,
      proposalId: string,
      revision: Revision,
      also: Also,
    ): Promise<ProposalRow | Refusal> =>
      retrying(async () => {
        const row = await find(by, proposalId);
        if (isRefusal(row)) return row;
        const refusal = refuseMove(row, 'revised') ?? refuseSecrets(revision) ?? (await refuseLength(row, revision));
        if (refusal) return refusal;
        const { next, revision: written } = await revised(row, revision, { by, at: clock.now(), installers });
        return move(next, (run) => voidGate(run, by.principal), [
          insertRevision(written),
          ...telling.moved(by, 'proposal.revise', next, { sha256: next.sha256, revision: next.revision }),
          ...also(next),
        ]);
      }),

    /** Puts it into use, or asks those who decide on that. */
    apply: activation.apply.bind(activation),

    /** A gate that nobody opened in time. */
    expireGate: activation.expire.bind(activation),

    reject: (
      caller: Caller,
      proposalId: string,
      reason: string | undefined,
      also: Also,
    ): Promise<ProposalRow | Refusal> =>
      retrying(async () => {
        const row = await find(caller.subject, proposalId);
        if (isRefusal(row) || row.state === 'rejected') return row;
        const refusal = refuseMove(row, 'rejected');
        if (refusal) return refusal;
        const next = withFacts({ ...row, state: 'rejected', updated_at: clock.now() }, { rejectReason: clean(reason) });
        return move(next, (run) => close(run, 'rejected'), [
          ...telling.moved(caller.subject, 'proposal.reject', next, reason ? { reason } : {}),
          ...also(next),
        ]);
      }),

    archive: (caller: Caller, proposalId: string, also: Also): Promise<ProposalRow | Refusal> =>
      retrying(async () => {
        const row = await find(caller.subject, proposalId);
        if (isRefusal(row) || row.state === 'archived') return row;
        const refusal = refuseMove(row, 'archived');
        if (refusal) return refusal;
        const next: ProposalRow = { ...row, state: 'archived', updated_at: clock.now() };
        const writes = [...telling.moved(caller.subject, 'proposal.archive', next), ...also(next)];
        const isOver = row.state === 'rejected' || row.state === 'applied';
        return isOver ? put(next, writes) : move(next, (run) => close(run, 'archived'), writes);
      }),

    /** What waits for a person, for the inbox. */
    waiting: [pendingSource(store)],

    /** Which proposals some runs tell of, by run. */
    async ofRuns({ tenant }: Visibility, runIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
      if (runIds.length === 0) return new Map();
      const rows = await store.read<Pick<ProposalRow, 'run_id' | 'proposal_id'>>(proposalsOfRuns(tenant, runIds));
      return new Map(rows.map(({ run_id, proposal_id }) => [run_id, proposal_id]));
    },

    /** What applied proposals have put into use and nobody has taken back. */
    installed: (from: Visibility, before: string | undefined, limit: number): Promise<InstalledRow[]> =>
      store.read<InstalledRow>(listInstalled(from, { before }, limit)),

    findInstalled,

    /** Takes back what a proposal put into use: what was there before is there again. */
    uninstall: ({ subject }: Caller, ref: string, also: () => Unit): Promise<Refusal | undefined> =>
      retrying(async () => {
        const installed = await findInstalled(subject, ref);
        if (isRefusal(installed)) return installed;
        const row = await find(subject, installed.proposal_id);
        if (isRefusal(row)) return row;
        const { author } = candidateOf(row, subject);
        const isDone = await commitUnless('artifact', store, [
          markUninstalled(installed, clock.now()),
          ...(await installers[installed.kind].uninstall(author, JSON.parse(installed.undo))),
          ...telling.moved(subject, 'proposal.uninstall', row, { installedArtifactRef: ref }),
          ...also(),
        ]);
        uses.feed.wake(subject.tenant);
        return isDone ? undefined : NOT_FOUND;
      }),
  };

  async function find(from: Visibility, proposalId: string): Promise<ProposalRow | Refusal> {
    const [row] = await store.read<ProposalRow>(findProposal(from, proposalId));
    return row ?? NOT_FOUND;
  }

  async function refuseLength(row: ProposalRow, { artifactText = row.text }: Revision): Promise<Refusal | undefined> {
    const [size] = await store.read<HistorySize>(measureRevisions(row.tenant, row.proposal_id));
    return refuseMoreRevisions(size!, artifactText);
  }

  async function findInstalled(from: Visibility, ref: string): Promise<InstalledRow | Refusal> {
    const [row] = await store.read<InstalledRow>(listInstalled(from, { ref }, 1));
    return row ?? NOT_FOUND;
  }

  /** What was foreseen of the draft holds for nothing else. */
  async function previewOf(row: ProposalRow, drafted: RevisionRow | undefined): Promise<unknown> {
    const preview = await installers[row.kind].preview?.(candidateOf(row));
    return preview ?? (row.sha256 === drafted?.sha256 ? factsOf(row).preview : undefined);
  }

  async function openGate({ tenant, run_id }: ProposalRow): Promise<OpenGate | undefined> {
    return runtime.reader.view({ tenant }, run_id, ({ run }) => {
      const open = isTerminal(run) ? undefined : gateOf(run);
      if (!open) return undefined;
      const { interruptId: approvalId, requestedAt, expiresAt, data, votes } = open;
      return { approvalId, requestedAt, expiresAt, data, grantedBy: [...votes.keys()] };
    });
  }

  /** One transaction moves the proposal and its run. */
  async function move(
    next: ProposalRow,
    decide: (run: Run) => readonly NewEvent[],
    also: Unit,
  ): Promise<ProposalRow | Refusal> {
    const { tenant, run_id } = next;
    const outcome = await command(
      runtime,
      { tenant },
      run_id,
      (run) => (isTerminal(run) ? LOOK_AGAIN : decide(run)),
      () => [moveProposal(next), ...also],
    );
    return isRefusal(outcome) ? outcome : next;
  }

  /** The same, where the run has come to its end. */
  async function put(next: ProposalRow, also: Unit): Promise<ProposalRow | Refusal> {
    const isDone = await commitUnless('proposal', store, [moveProposal(next), ...also]);
    uses.feed.wake(next.tenant);
    return isDone ? next : LOOK_AGAIN;
  }
}

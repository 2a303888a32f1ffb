import { criteriaProblems } from '../../../engine/judging/verifier-spec.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { PreviewRequest, ProposalPreview } from '../../../protocol/learning/previews.ts';
import { and, type Change, changeOf } from '../../../runtime/change.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import { addWork } from '../../../store/queue.ts';
import { timeOf } from '../../../system/ids.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import { factsOf, type ProposalRow, type Proposals } from '../proposals/door.ts';
import type { Verifiers } from '../verifiers/door.ts';
import { calendarOf } from './calendar.ts';
import { previewOf } from './document.ts';
import { findPreview, insertPreview, listPreviews, type PreviewRow, pruneOldPreviews } from './records.ts';
import type { PreviewBody } from './stored-preview.ts';
import { PREVIEW_WORK } from './work.ts';

/** Source runs that are repeated unless the caller says how many. */
const RUNS = 10;
/** Previews of a tenant that may be under way at once. */
const RUNNING_MAX = 3;
/** Previews that are kept for a proposal. */
const KEPT_MAX = 10;
const TIME_MS_MAX = 30 * 60_000;

/** The services that previews use. */
interface PreviewNeeds {
  readonly proposals: Pick<Proposals, 'find'>;
  readonly verifiers: Pick<Verifiers, 'get'>;
  readonly audit: Pick<Audit, 'entry'>;
}

const TOO_MANY = refuse('conflict', `At most ${RUNNING_MAX} previews run at the same time. Wait until one has ended.`, {
  reason: 'busy',
  limit: RUNNING_MAX,
});

/** Previews of proposals: asked for here, carried out by the worker. */
export class PreviewService {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #needs: PreviewNeeds;

  constructor(host: Pick<Host, 'runtime'>, needs: PreviewNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  async find({ subject }: Caller, previewId: string): Promise<ProposalPreview | Refusal> {
    const [row] = await this.#host.runtime.store.read<PreviewRow>(findPreview(subject, previewId));
    return row ? previewOf(row) : NOT_FOUND;
  }

  async list({ subject }: Caller, proposalId: string): Promise<ProposalPreview[] | Refusal> {
    const proposal = await this.#needs.proposals.find(subject, proposalId);
    if (isRefusal(proposal)) return proposal;
    const rows = await this.#host.runtime.store.read<PreviewRow>(listPreviews(subject, proposalId, KEPT_MAX));
    return rows.map(previewOf);
  }

  /** Begins a preview of an undecided proposal. Nothing is installed, whatever comes of it. */
  async create(
    caller: Caller,
    proposalId: string,
    request: PreviewRequest,
  ): Promise<Change<ProposalPreview> | Refusal> {
    const { subject } = caller;
    const proposal = await this.#needs.proposals.find(subject, proposalId);
    if (isRefusal(proposal)) return proposal;
    const refusal = refuseDecided(proposal) ?? refuseSpending(caller) ?? (await this.#refuseJudge(caller, request));
    if (refusal) return refusal;
    const row = this.#rowFor(caller, proposal, request);
    const { hub } = this.#host.runtime;
    const { preview_id: workId, tenant, created_at: dueAt } = row;
    const isOver = row.state === 'done';
    const writes = [
      insertPreview(row, RUNNING_MAX),
      pruneOldPreviews(tenant, proposalId, KEPT_MAX),
      ...(isOver ? [] : [addWork({ workId, kind: PREVIEW_WORK, tenant, dueAt })]),
    ];
    const { budgetUsd } = request;
    return and(
      changeOf(previewOf(row), writes, {
        refusals: { running: TOO_MANY },
        announce: isOver ? [] : [() => hub.wakeWorkers(workId)],
      }),
      entryBy(this.#needs.audit, subject, 'proposal.preview', proposalId, { previewId: workId, budgetUsd }),
    );
  }

  #rowFor({ subject }: Caller, proposal: ProposalRow, { maxRuns = RUNS, ...options }: PreviewRequest): PreviewRow {
    const { ids, clock } = this.#host.runtime;
    const now = clock.now();
    const isAutomation = proposal.kind === 'automation';
    const sources = factsOf(proposal).sourceRunIds.toSorted().reverse();
    const starts = sources.map((runId) => ({ runId, at: timeOf(runId, RUN_PREFIX) }));
    const body: PreviewBody = {
      subject,
      options,
      pairs: isAutomation ? [] : sources.slice(0, maxRuns).map((sourceRunId) => ({ sourceRunId, state: 'waiting' })),
      calendar: isAutomation ? calendarOf(JSON.parse(proposal.text) as JsonObject, starts, now) : undefined,
    };
    const isOver = body.pairs.length === 0;
    return {
      preview_id: ids.next('prev-'),
      tenant: proposal.tenant,
      workspace: proposal.workspace,
      proposal_id: proposal.proposal_id,
      kind: proposal.kind,
      sha256: proposal.sha256,
      artifact: proposal.text,
      state: isOver ? 'done' : 'running',
      body: JSON.stringify(body),
      version: 1,
      created_at: now,
      deadline_at: now + TIME_MS_MAX,
      ended_at: isOver ? now : null,
    };
  }

  async #refuseJudge(caller: Caller, { verifierRef, criteria = [] }: PreviewRequest): Promise<Refusal | undefined> {
    if (verifierRef !== undefined && criteria.length > 0) {
      return invalid('criteria', 'Name a verifier or criteria, not both.');
    }
    const [problem] = criteriaProblems('criteria', criteria);
    if (problem) return invalid(problem.path, problem.message);
    const found = verifierRef === undefined ? undefined : await this.#needs.verifiers.get(caller, verifierRef);
    return isRefusal(found) ? invalid('verifierRef', 'There is no such verifier.') : undefined;
  }
}

function refuseDecided({ state }: ProposalRow): Refusal | undefined {
  if (state === 'draft' || state === 'revised') return undefined;
  return refuse('conflict', 'The proposal is decided, so there is nothing to preview.', { state });
}

/** A preview starts runs, which may cost something. */
function refuseSpending({ scopes }: Caller): Refusal | undefined {
  if (scopes.has('runs:create')) return undefined;
  return refuse('forbidden', 'A preview also needs the scope runs:create.', { scopeRequired: 'runs:create' });
}

function invalid(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}

import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { ProposalEffect } from '../../../protocol/learning/results.ts';
import { and, changeOf, perform } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Host } from '../../capability.ts';
import type { Costs } from '../../operations/costs/door.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Caller } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import type { Impact } from '../impact/door.ts';
import { factsOf, type Installation, type ProposalRow, type Proposals } from '../proposals/door.ts';
import { FigureReader, type SeenWindow } from './figures.ts';
import { harms, measuresOf, overall } from './measures.ts';
import { findRollback, insertRollback } from './records.ts';
import { rollbackOf } from './rollback.ts';

/** The longest time that is looked at on each side. */
export const WINDOW_MS_MAX = 28 * 24 * 60 * 60_000;

/** The services that tell what was applied and how it went. */
interface ResultNeeds {
  readonly proposals: Pick<Proposals, 'find' | 'installation' | 'draft'>;
  readonly impact: Impact;
  readonly prompts: Pick<Prompts, 'find' | 'versions'>;
  readonly packs: Pick<Packs, 'current' | 'find' | 'versions'>;
  readonly costs: Pick<Costs, 'of'>;
  readonly feedback: Pick<Feedback, 'opinions' | 'corrected'> | undefined;
}

/** An effect, and the runs after the change that were not good. */
interface Seen {
  readonly effect: ProposalEffect;
  readonly installed: Installation;
  readonly after: SeenWindow;
}

/** The principal of rollbacks that the host drafts. */
const HOST_PRINCIPAL = 'host:results';

/** What has become of things since a proposal was applied. */
export class ResultService {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #needs: ResultNeeds;
  readonly #figures: FigureReader;

  constructor(host: Pick<Host, 'runtime'>, needs: ResultNeeds) {
    this.#host = host;
    this.#needs = needs;
    this.#figures = new FigureReader(host.runtime, needs);
  }

  /** Compares the time since a proposal was applied with as long a time before. */
  async effectOf(caller: Caller, proposalId: string): Promise<ProposalEffect | Refusal> {
    const seen = await this.#see(caller, proposalId);
    return isRefusal(seen) ? seen : seen.effect;
  }

  /** Drafts the proposal that takes an artifact back if things surely got worse, once; tells whether it did. */
  async rollBackIfWorse(installed: Installation): Promise<boolean> {
    const { tenant, proposal_id: proposalId } = installed;
    const row = await this.#needs.proposals.find({ tenant }, proposalId);
    if (isRefusal(row) || (await this.#rollbackFor(tenant, proposalId)) !== undefined) return false;
    const subject = hostSubject(row);
    const seen = await this.#see({ subject, scopes: new Set(), keyId: HOST_PRINCIPAL, isTest: false }, proposalId);
    const worse = isRefusal(seen) ? [] : harms(seen.effect.measures);
    if (isRefusal(seen) || worse.length === 0) return false;
    const { badRunIds } = seen.after;
    const draft = await rollbackOf(this.#needs, subject, installed, { harms: worse, badRunIds });
    if (!draft) return false;
    const drafted = await perform(this.#host.runtime, async () => {
      const change = await this.#needs.proposals.draft(subject, draft);
      if (isRefusal(change)) return change;
      const writes = [insertRollback(tenant, proposalId, change.result.id)];
      return and(change, changeOf(undefined, writes, { refusals: { rollback: DRAFTED } }));
    });
    return !isRefusal(drafted);
  }

  async #see(caller: Caller, proposalId: string): Promise<Seen | Refusal> {
    const { subject } = caller;
    const row = await this.#needs.proposals.find(subject, proposalId);
    if (isRefusal(row)) return row;
    const installed = await this.#needs.proposals.installation(subject, proposalId);
    if (!installed)
      return refuse('conflict', 'The proposal has not been applied. Apply it first.', { state: row.state });
    const workflows = await this.#workflowsOf(caller, row);
    const { installed_at: at, uninstalled_at } = installed;
    const windowMs = Math.min(WINDOW_MS_MAX, (uninstalled_at ?? this.#host.runtime.clock.now()) - at);
    const from = visibilityOf(row, subject);
    const [before, after] = await this.#figures.of(from, workflows, [at - windowMs, at], [at, at + windowMs]);
    const measures = measuresOf(before, after);
    const rollbackProposalId = await this.#rollbackFor(row.tenant, proposalId);
    return {
      installed,
      after,
      effect: {
        proposalId,
        artifactRef: installed.ref,
        appliedAt: timestamp(at),
        windowMs,
        workflows,
        verdict: overall(measures),
        measures,
        ...(rollbackProposalId === undefined ? {} : { rollbackProposalId }),
      },
    };
  }

  /** The workflows that the artifact takes part in; for a chain, which is copied, those that it was learnt from. */
  async #workflowsOf(caller: Caller, row: ProposalRow): Promise<string[]> {
    if (row.kind === 'automation') return [(JSON.parse(row.text) as { workflowId: string }).workflowId];
    const impact = await this.#needs.impact.of(caller, row.proposal_id);
    const following = isRefusal(impact) ? [] : impact.affected.filter(({ kind }) => kind === 'workflow');
    if (following.length > 0) return [...new Set(following.map(({ id }) => id))];
    const { sourceRunIds } = factsOf(row);
    const sources = await Promise.all(
      sourceRunIds.map((runId) => this.#host.runtime.reader.row({ tenant: row.tenant }, runId)),
    );
    return [...new Set(sources.flatMap((source) => source?.workflow_id ?? []))];
  }

  async #rollbackFor(tenant: string, proposalId: string): Promise<string | undefined> {
    const [found] = await this.#host.runtime.store.read<{ rollback_id: string }>(findRollback(tenant, proposalId));
    return found?.rollback_id;
  }
}

const DRAFTED = refuse('conflict', 'The rollback was already drafted.');

/** The runs that the artifact was installed for, as far as the caller may see them. */
function visibilityOf({ tenant, workspace }: ProposalRow, subject: Visibility): Visibility {
  return { tenant, workspace: workspace ?? subject.workspace };
}

function hostSubject(row: ProposalRow): Subject {
  const { tenantName } = factsOf(row);
  const { tenant, workspace } = row;
  return {
    tenant,
    tenantName,
    workspace: workspace ?? undefined,
    principal: HOST_PRINCIPAL,
    issuer: 'urn:capstan:host',
    lane: 'host',
  };
}

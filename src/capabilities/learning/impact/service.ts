import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { ProposalImpact } from '../../../protocol/learning/impact.ts';
import { rubricOf } from '../../../protocol/learning/verifiers.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import { firstIdAt } from '../../../system/ids.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import { type Schedules, slotCount } from '../../starting/schedules/door.ts';
import type { Goals } from '../goals/door.ts';
import type { ProposalRow, Proposals } from '../proposals/door.ts';
import type { Impact } from './door.ts';
import { countRunsSince } from './records.ts';
import { agentUses, goalUses, promptUses, promptUsesOfAgents, type Use, verifierUses } from './uses.ts';

const WEEK_MS = 7 * 24 * 60 * 60_000;
/** Workflows, agents and schedules that are looked at. */
const WORKFLOWS_MAX = 2_000;
const AGENTS_MAX = 1_000;
const SCHEDULES_MAX = 200;
const GOALS_MAX = 1_000;
/** Workflows or goals that are read at once: each may have a megabyte. */
const PAGE = 50;

/** The services that tell what exists. */
interface ImpactNeeds {
  readonly proposals: Pick<Proposals, 'find'>;
  readonly workflows: Pick<Workflows, 'list'>;
  readonly packs: Pick<Packs, 'agents'>;
  readonly schedules: Pick<Schedules, 'list'>;
  readonly goals: Pick<Goals, 'completions'> | undefined;
}

/** The members of artifacts that name what they are. */
interface Named {
  readonly templateId: string;
  readonly tags?: readonly string[];
  readonly agents?: readonly { readonly agentId: string }[];
  readonly name: string;
}

/** What a proposal would change, and the uses of that. */
interface Reach {
  readonly changes: readonly string[];
  readonly uses: readonly Use[];
  /** Whether there are more workflows than were looked at. */
  readonly isPartial: boolean;
}

/** Tells what applying a proposal would change for what exists already. */
export class ImpactService implements Impact {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #needs: ImpactNeeds;

  constructor(host: Pick<Host, 'runtime'>, needs: ImpactNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  async of(caller: Caller, proposalId: string): Promise<ProposalImpact | Refusal> {
    const row = await this.#needs.proposals.find(caller.subject, proposalId);
    if (isRefusal(row)) return row;
    const { changes, uses, isPartial } = await this.#reach(caller, row);
    const following = uses.filter(({ isPinned }) => !isPinned).map(({ use }) => use);
    const workflowIds = [...new Set(following.flatMap(({ kind, id }) => (kind === 'workflow' ? [id] : [])))];
    const added = row.kind === 'automation' ? this.#runsPerWeek(row.text) : undefined;
    return {
      proposalId,
      changes: [...changes],
      affected: [...following, ...(await this.#schedulesOf(caller, workflowIds))],
      pinned: uses.filter(({ isPinned }) => isPinned).map(({ use }) => use),
      runsLastWeek: await this.#runsLastWeek(caller, workflowIds),
      ...(added === undefined ? {} : { addedRunsPerWeek: added }),
      ...(isPartial ? { isPartial: true } : {}),
    };
  }

  /** Chains are copied when somebody uses them, and an automation is a schedule of its own: nothing refers to either. */
  async #reach(caller: Caller, row: ProposalRow): Promise<Reach> {
    const artifact = JSON.parse(row.text) as Named;
    if (row.kind === 'prompt-template') {
      const verifierId = rubricOf(artifact);
      if (verifierId !== undefined) return this.#reachOfRubric(caller, verifierId);
      const agents = (await this.#needs.packs.agents(caller.subject, AGENTS_MAX)).map(({ manifest }) => manifest);
      const { templateId } = artifact;
      const ofAgents = promptUsesOfAgents(templateId, agents);
      const found = await this.#usesInWorkflows(caller, (page) => promptUses(templateId, page, ofAgents));
      return { changes: [`prompt:${templateId}`], ...found, uses: [...ofAgents, ...found.uses] };
    }
    if (row.kind === 'agent-pack') {
      const agentIds = (artifact.agents ?? []).map(({ agentId }) => agentId);
      const found = await this.#usesInWorkflows(caller, (page) => agentUses(agentIds, page));
      return { changes: agentIds.map((agentId) => `agent:${agentId}`), ...found };
    }
    return { changes: row.kind === 'automation' ? [] : [`pack:${artifact.name}`], uses: [], isPartial: false };
  }

  async #reachOfRubric(caller: Caller, verifierId: string): Promise<Reach> {
    const found = await this.#usesInWorkflows(caller, (page) => verifierUses(verifierId, page));
    const ofGoals: Use[] = [];
    for (const state of ['active', 'escalated'] as const)
      ofGoals.push(...(await this.#goalUses(caller, verifierId, state)));
    return { changes: [`verifier:${verifierId}`], ...found, uses: [...found.uses, ...ofGoals] };
  }

  /** The uses in the workflows of the caller, which are read page by page. */
  async #usesInWorkflows(
    caller: Caller,
    usesIn: (definitions: readonly WorkflowDefinition[]) => Use[],
  ): Promise<Pick<Reach, 'uses' | 'isPartial'>> {
    const uses: Use[] = [];
    let after = FIRST;
    for (let seen = 0; seen < WORKFLOWS_MAX; seen += PAGE) {
      const page = await this.#needs.workflows.list(caller, after, PAGE);
      uses.push(...usesIn(page.map(({ definition }) => definition)));
      const last = page.at(-1);
      if (!last || page.length < PAGE) return { uses, isPartial: false };
      after = { updatedAt: last.updatedAt, workflowId: last.definition.id };
    }
    return { uses, isPartial: (await this.#needs.workflows.list(caller, after, 1)).length > 0 };
  }

  async #goalUses(caller: Caller, verifierId: string, state: 'active' | 'escalated'): Promise<Use[]> {
    const uses: Use[] = [];
    let before: string | undefined;
    for (let seen = 0; seen < GOALS_MAX; seen += PAGE) {
      const page = (await this.#needs.goals?.completions(caller, { state, before }, PAGE)) ?? [];
      uses.push(...goalUses(verifierId, page));
      if (page.length < PAGE) break;
      before = page.at(-1)?.id;
    }
    return uses;
  }

  async #schedulesOf(caller: Caller, workflowIds: readonly string[]): Promise<ProposalImpact['affected']> {
    if (workflowIds.length === 0) return [];
    const schedules = await this.#needs.schedules.list(caller, {}, SCHEDULES_MAX);
    return schedules
      .filter(({ workflowId, enabled }) => enabled && workflowIds.includes(workflowId))
      .map(({ id, workflowId }) => ({ kind: 'schedule', id, ref: workflowId, via: workflowId }));
  }

  async #runsLastWeek({ subject }: Caller, workflowIds: readonly string[]): Promise<ProposalImpact['runsLastWeek']> {
    if (workflowIds.length === 0) return { total: 0, byWorkflow: {} };
    const { store, clock } = this.#host.runtime;
    const since = firstIdAt(clock.now() - WEEK_MS, RUN_PREFIX);
    const rows = await store.read<{ workflow_id: string; runs: number }>(countRunsSince(subject, workflowIds, since));
    return {
      total: rows.reduce((sum, { runs }) => sum + runs, 0),
      byWorkflow: Object.fromEntries(rows.map(({ workflow_id, runs }) => [workflow_id, runs])),
    };
  }

  /** How often a schedule would fire in the next seven days. */
  #runsPerWeek(text: string): number {
    const { cron, timezone = 'UTC' } = JSON.parse(text) as { cron?: string; timezone?: string };
    if (cron === undefined) return 1;
    const now = this.#host.runtime.clock.now();
    return slotCount({ cron, timezone }, now, now + WEEK_MS);
  }
}

/** Before the most recently changed workflow. */
const FIRST = { updatedAt: Number.MAX_SAFE_INTEGER, workflowId: '' };

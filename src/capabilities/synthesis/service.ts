import { isRefusal, NOT_FOUND, type Refusal } from '../../protocol/errors.ts';
import { ARTIFACT_KINDS, type ArtifactKind, type Proposal } from '../../protocol/proposals.ts';
import { RUN_PREFIX } from '../../runtime/creation.ts';
import type { WorkHandler } from '../../runtime/executor.ts';
import { identityOf } from '../../runtime/run-row.ts';
import { Turns } from '../../runtime/turns.ts';
import { ownerOf } from '../../store/definitions.ts';
import type { RunRow } from '../../store/log.ts';
import { ensureWork } from '../../store/queue.ts';
import { sha256Hex } from '../../system/digest.ts';
import { firstIdAt } from '../../system/ids.ts';
import type { Caller, Host } from '../capability.ts';
import type { FeedbackService } from '../feedback/service.ts';
import type { ModelService } from '../models/service.ts';
import type { PackService } from '../packs/service.ts';
import type { PromptService } from '../prompts/service.ts';
import type { ProposalService } from '../proposals/service.ts';
import type { ScheduleService } from '../schedules/service.ts';
import { findAutomations } from './automations.ts';
import { findChains } from './chains.ts';
import { findCorrectedPrompts } from './corrected-prompts.ts';
import { EVIDENCE_MAX, type Habit, type Mining } from './habit.ts';
import { Neighbours } from './neighbours.ts';
import { Reading } from './reading.ts';
import { findHabit, type HabitRow, keepHabit, latestRun, listTenants } from './records.ts';
import { findToolUsers } from './tool-users.ts';
import { type Writer, worded } from './wording.ts';

/** What the operator says of looking for habits. */
export interface SynthesisSettings {
  /** How often something must have been seen. */
  readonly supportMin: number;
  readonly periodMinMs: number;
  readonly timezones: readonly string[];
  /** Who puts drafts into words. */
  readonly model?: { readonly provider: string; readonly model: string } | undefined;
  /** How often every tenant is looked at without anybody asking; never, where it is not said. */
  readonly everyMs?: number | undefined;
}

/** What is to be looked at. */
export interface SynthesisRequest {
  readonly kinds?: readonly ArtifactKind[] | undefined;
  readonly sourceRunIds?: readonly string[] | undefined;
  readonly since?: number | undefined;
}

export interface Synthesized {
  readonly created: readonly Proposal[];
  /** Runs that were read for the first time. */
  readonly scannedRuns: number;
}

export interface SynthesisNeeds {
  readonly proposals: ProposalService;
  readonly prompts: PromptService;
  readonly packs: PackService;
  readonly schedules: ScheduleService;
  readonly models: ModelService;
  readonly feedback?: FeedbackService | undefined;
}

export type SynthesisService = ReturnType<typeof synthesisService>;

/** The kinds of work items: the round that sees to all tenants, and the look at one of them. */
export const ROUND = 'synthesis-round';
export const LOOK = 'synthesis';

const MINERS: Record<ArtifactKind, (mining: Mining) => AsyncGenerator<Habit>> = {
  'prompt-template': findCorrectedPrompts,
  'workflow-chain-pack': findChains,
  'agent-pack': findToolUsers,
  automation: findAutomations,
};

const TENANTS_AT_ONCE = 200;
/** In whose name drafts are made that nobody asked for. */
const HOST_PRINCIPAL = 'host:synthesis';

export function synthesisService({ runtime, settings }: Host, needs: SynthesisNeeds) {
  const { store, clock, reader, log } = runtime;
  const { supportMin, periodMinMs, timezones, everyMs } = settings.synthesis;
  const reading = new Reading(runtime, needs.feedback);
  const turns = new Turns();

  return {
    /** Looks for habits in what the caller may see, and drafts what could be made of them. Runs are only read. */
    async synthesize(caller: Caller, request: SynthesisRequest, signal?: AbortSignal): Promise<Synthesized | Refusal> {
      for (const runId of request.sourceRunIds ?? []) {
        if (!(await reader.row(caller.subject, runId))) return NOT_FOUND;
      }
      // One at a time: the second finds what the first has drafted.
      return turns.take(caller.subject.tenant, () => look(caller, request, signal));
    },

    /** Sees to it that every tenant with runs is looked at. */
    round: (async () => {
      if (everyMs === undefined) return { writes: [] };
      const now = clock.now();
      for (let after = ''; ; ) {
        const tenants = await store.read<{ tenant: string }>(listTenants(after, TENANTS_AT_ONCE));
        const last = tenants.at(-1);
        if (!last) return { writes: [], dueAgainAt: now + everyMs };
        await store.commit(
          tenants.map(({ tenant }) => ensureWork({ workId: `${LOOK}:${tenant}`, kind: LOOK, tenant, dueAt: now })),
        );
        after = last.tenant;
      }
    }) satisfies WorkHandler,

    /** Looks at one tenant. */
    lookAt: (async ({ tenant }) => {
      const [row] = await store.read<RunRow>(latestRun(tenant));
      if (row) {
        const { tenantName } = identityOf(row).subject;
        const { created, scannedRuns } = await turns.take(tenant, () => look(hostCaller(tenant, tenantName), {}));
        if (created.length > 0) log.info({ drafts: created.length, scannedRuns }, 'drafted what recurs');
      }
      return { writes: [] };
    }) satisfies WorkHandler,
  };

  async function look(caller: Caller, request: SynthesisRequest, signal?: AbortSignal): Promise<Synthesized> {
    const { tenant } = caller.subject;
    const scannedRuns = await reading.catchUp(tenant, signal);
    const mining = miningFor(caller, request);
    const neighbours = new Neighbours(caller, needs);
    const created: Proposal[] = [];
    for (const kind of ARTIFACT_KINDS.filter((each) => request.kinds?.includes(each) ?? true)) {
      for await (const habit of MINERS[kind](mining)) {
        if (signal?.aborted) return { created, scannedRuns };
        const proposal = await propose(mining, habit, neighbours);
        if (proposal === 'too-many-pending') return { created, scannedRuns };
        if (proposal) created.push(proposal);
      }
    }
    return { created, scannedRuns };
  }

  function miningFor({ subject }: Caller, { sourceRunIds, since }: SynthesisRequest): Mining {
    const { tenant, workspace } = subject;
    const fromId = since === undefined ? undefined : firstIdAt(since, RUN_PREFIX);
    return {
      runtime,
      subject,
      among: { tenant, workspace, fromId, runIds: sourceRunIds },
      rules: { supportMin, periodMinMs, timezones },
      prompts: needs.prompts,
      packs: needs.packs,
      feedback: needs.feedback,
    };
  }

  /** Drafts what a habit comes to, unless it was drafted before and there is not as much new behind it as there was. */
  async function propose(
    { subject }: Mining,
    habit: Habit,
    neighbours: Neighbours,
  ): Promise<Proposal | 'too-many-pending' | undefined> {
    const { kind, support, evidence } = habit;
    const [owner, key] = [ownerOf(subject), sha256Hex(habit.key)];
    const [known] = await store.read<HabitRow>(findHabit(owner, key));
    if (known && !isRenewed(known, habit)) return undefined;
    const plain = await habit.draft();
    if (!plain) return undefined;
    const draft = await worded(writer(), habit, plain, subject.tenant);
    const { nearest, duplicateOf } = await neighbours.nearTo(kind, draft.artifact, draft.revises);
    const through = evidence[0]!.id;
    const outcome = await needs.proposals.draft(
      subject,
      {
        kind,
        artifact: draft.artifact,
        title: draft.title,
        rationale: draft.rationale,
        sourceRunIds: [...new Set(evidence.map(({ runId }) => runId))],
        synthesizerModel: draft.synthesizerModel,
        duplicateOf,
        evidence: {
          key: sha256Hex(JSON.stringify([key, support, through])),
          sources: evidence.map(({ runId, why, excerpt }) => ({ runId, why, ...(excerpt ? { excerpt } : {}) })),
          nearest,
          preview: draft.preview,
        },
      },
      [keepHabit(owner, key, { support, through })],
    );
    if (outcome === 'known-evidence') return undefined;
    if (outcome === 'too-many-pending') return outcome;
    if (isRefusal(outcome)) {
      log.warn({ kind, reason: outcome.message }, 'what recurs does not make a valid artifact; it is left alone');
      return undefined;
    }
    await neighbours.add(kind, outcome.id, draft.artifact);
    return outcome;
  }

  function writer(): Writer | undefined {
    const { model: choice } = settings.synthesis;
    const provider = choice && needs.models.providers.find(({ id }) => id === choice.provider);
    return provider && { provider, model: choice.model, clock, log };
  }
}

/** The same habit is worth another look once there is as much new evidence as there was before. */
function isRenewed({ support, through }: HabitRow, { evidence }: Habit): boolean {
  const fresh = evidence.filter(({ id }) => id > through).length;
  return fresh >= Math.min(support, EVIDENCE_MAX);
}

/** The host itself, on behalf of a whole tenant. */
function hostCaller(tenant: string, tenantName: string): Caller {
  const subject = { tenant, tenantName, principal: HOST_PRINCIPAL, issuer: 'urn:capstan:host', lane: 'host' };
  return { subject, scopes: new Set(), keyId: HOST_PRINCIPAL, isTest: false };
}

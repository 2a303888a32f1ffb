import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { ArtifactKind, Proposal } from '../../../protocol/learning/proposals.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import type { WorkHandler } from '../../../runtime/executor.ts';
import { identityOf } from '../../../runtime/run-row.ts';
import { Turns } from '../../../runtime/turns.ts';
import type { RunRow } from '../../../store/log.ts';
import { ensureWork } from '../../../store/queue.ts';
import { firstIdAt } from '../../../system/ids.ts';
import type { ModelService } from '../../ai/models/service.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Caller } from '../../request.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import type { ProposalService } from '../proposals/service.ts';
import type { Mining } from './habit.ts';
import { Neighbours } from './neighbours.ts';
import { Pass } from './pass.ts';
import { Reading } from './reading.ts';
import { latestRun, listTenants } from './records.ts';
import type { Writer } from './wording.ts';

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
  /** Runs that the caller may see and that were read for the first time. */
  readonly scannedRuns: number;
}

export interface SynthesisNeeds {
  readonly proposals: ProposalService;
  readonly prompts: Prompts;
  readonly packs: Packs;
  readonly schedules: Schedules;
  readonly models: ModelService;
  readonly feedback?: Feedback | undefined;
}

export type SynthesisService = ReturnType<typeof synthesisService>;

/** The kinds of work items: the round that sees to all tenants, and the look at one of them. */
export const ROUND = 'synthesis-round';
export const LOOK = 'synthesis';

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
    const scannedRuns = await reading.catchUp(caller.subject, signal);
    const pass = new Pass({
      mining: miningFor(caller, request),
      proposals: needs.proposals,
      neighbours: new Neighbours(caller, needs),
      writer: writer(),
      kinds: request.kinds,
      signal,
    });
    return { created: await pass.run(), scannedRuns };
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

  function writer(): Writer | undefined {
    const { model: choice } = settings.synthesis;
    const provider = choice && needs.models.providers.find(({ id }) => id === choice.provider);
    return provider && { provider, model: choice.model, clock, log };
  }
}

/** The host itself, on behalf of a whole tenant. */
function hostCaller(tenant: string, tenantName: string): Caller {
  const subject = { tenant, tenantName, principal: HOST_PRINCIPAL, issuer: 'urn:capstan:host', lane: 'host' };
  return { subject, scopes: new Set(), keyId: HOST_PRINCIPAL, isTest: false };
}

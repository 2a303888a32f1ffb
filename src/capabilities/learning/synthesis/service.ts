import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import { ARTIFACT_KINDS, type ArtifactKind } from '../../../protocol/learning/proposals.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import { identityOf } from '../../../runtime/run-row.ts';
import type { RunRow } from '../../../store/log.ts';
import { firstIdAt } from '../../../system/ids.ts';
import { redactPersonalData } from '../../../system/personal-data.ts';
import type { Models } from '../../ai/models/door.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Host } from '../../capability.ts';
import type { Costs } from '../../operations/costs/door.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Caller } from '../../request.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import type { Goals } from '../goals/door.ts';
import type { Proposals } from '../proposals/door.ts';
import type { Verifiers } from '../verifiers/door.ts';
import type { MiningContext } from './habit.ts';
import { Neighbours } from './neighbours.ts';
import { Outcomes } from './outcomes.ts';
import { latestRun } from './records.ts';
import { RunCollector } from './run-collector.ts';
import { Scan, type ScanResult } from './scan.ts';
import type { SynthesisSettings } from './settings.ts';
import type { Writer } from './wording.ts';

/** What a scan covers: everything, unless this says otherwise. */
interface SynthesisRequest {
  readonly kinds?: readonly ArtifactKind[] | undefined;
  readonly sourceRunIds?: readonly string[] | undefined;
  readonly since?: number | undefined;
}

/** The result of a scan. */
interface SynthesisResult extends ScanResult {
  /** Runs that the caller may see and that were read for the first time. */
  readonly scannedRuns: number;
}

/** The services that synthesis uses. */
interface SynthesisNeeds {
  readonly proposals: Pick<Proposals, 'draft' | 'outcome' | 'list' | 'installed'>;
  readonly prompts: Pick<Prompts, 'find' | 'versions' | 'list'>;
  readonly packs: Pick<Packs, 'current' | 'versions' | 'agent' | 'list'>;
  readonly schedules: Pick<Schedules, 'list'>;
  readonly models: Pick<Models, 'providers'>;
  readonly feedback: Feedback | undefined;
  readonly costs: Pick<Costs, 'of'>;
  readonly verifiers: Pick<Verifiers, 'get'>;
  readonly goals: Pick<Goals, 'agreement'> | undefined;
}

/** Schedules whose time zones are counted. */
const SCHEDULES_READ = 200;

/** The principal of scans that nobody asked for. */
const HOST_PRINCIPAL = 'host:synthesis';

/** Scans tenants for habits and drafts proposals. Runs are only read, and each draft is a change of its own. */
export class SynthesisService {
  readonly #host: Pick<Host, 'runtime'>;
  readonly #needs: SynthesisNeeds;
  readonly #settings: SynthesisSettings;
  readonly #collector: RunCollector;
  /** Scans of a tenant wait for each other, so that the second sees what the first drafted. */
  readonly #mutex = new KeyedMutex();

  constructor(host: Pick<Host, 'runtime'>, needs: SynthesisNeeds, settings: SynthesisSettings) {
    this.#host = host;
    this.#needs = needs;
    this.#settings = settings;
    this.#collector = new RunCollector(host.runtime, needs.feedback);
  }

  /** The kinds of artifacts that can be drafted: what people never correct, and what no model does, is not learnt. */
  get kinds(): ArtifactKind[] {
    const { models, feedback } = this.#needs;
    const hasModels = models.providers.length > 0;
    const needs: Partial<Record<ArtifactKind, boolean>> = {
      'prompt-template': hasModels && feedback !== undefined,
      'agent-pack': hasModels,
    };
    return ARTIFACT_KINDS.filter((kind) => needs[kind] ?? true);
  }

  /** Scans what the caller may see. */
  async synthesize(
    caller: Caller,
    request: SynthesisRequest,
    signal?: AbortSignal,
  ): Promise<SynthesisResult | Refusal> {
    for (const runId of request.sourceRunIds ?? []) {
      if (!(await this.#host.runtime.reader.row(caller.subject, runId))) return NOT_FOUND;
    }
    return this.#scanInTurn(caller, request, signal);
  }

  /** Scans a whole tenant in the name of the host. */
  async scanTenant(tenant: string): Promise<SynthesisResult> {
    const [row] = await this.#host.runtime.store.read<RunRow>(latestRun(tenant));
    if (!row) return { created: [], heldBack: [], scannedRuns: 0 };
    return this.#scanInTurn(hostCaller(tenant, identityOf(row).subject.tenantName), {});
  }

  #scanInTurn(caller: Caller, request: SynthesisRequest, signal?: AbortSignal): Promise<SynthesisResult> {
    return this.#mutex.runExclusive(caller.subject.tenant, () => this.#scan(caller, request, signal));
  }

  async #scan(caller: Caller, request: SynthesisRequest, signal?: AbortSignal): Promise<SynthesisResult> {
    const scannedRuns = await this.#collector.collect(caller.subject, signal);
    const scan = new Scan({
      mining: await this.#miningFor(caller, request),
      proposals: this.#needs.proposals,
      neighbours: new Neighbours(caller, this.#needs),
      writer: this.#writer(),
      kinds: this.kinds.filter((kind) => request.kinds?.includes(kind) ?? true),
      personalData: this.#settings.personalData,
      signal,
    });
    return { ...(await scan.run()), scannedRuns };
  }

  /**
   * The time zones that people may go by: the one that the operator has set for them, then those of the schedules that
   * they have, then those of the host.
   */
  async #timezonesFor(caller: Caller): Promise<string[]> {
    const { timezones, timezoneOf = new Map<string, string>() } = this.#settings;
    const { tenantName, workspace } = caller.subject;
    const set = timezoneOf.get(`${tenantName}/${workspace}`) ?? timezoneOf.get(tenantName);
    const schedules = await this.#needs.schedules.list(caller, {}, SCHEDULES_READ);
    const used = Map.groupBy(
      schedules.flatMap(({ timezone }) => timezone ?? []),
      (timezone) => timezone,
    );
    const byUse = [...used].sort(([, one], [, other]) => other.length - one.length).map(([timezone]) => timezone);
    return [...new Set([...(set === undefined ? [] : [set]), ...byUse, ...timezones])];
  }

  async #miningFor(caller: Caller, { sourceRunIds, since }: SynthesisRequest): Promise<MiningContext> {
    const { subject } = caller;
    const { prompts, packs, feedback, costs, verifiers, goals } = this.#needs;
    const { supportMin, periodMinMs, monthlyUsdMax } = this.#settings;
    const timezones = await this.#timezonesFor(caller);
    const { tenant, workspace } = subject;
    const fromId = since === undefined ? undefined : firstIdAt(since, RUN_PREFIX);
    return {
      runtime: this.#host.runtime,
      subject,
      selection: { tenant, workspace, fromId, runIds: sourceRunIds },
      rules: { supportMin, periodMinMs, timezones },
      prompts,
      packs,
      feedback,
      monthlyUsdMax,
      verifiers,
      verdicts: goals?.agreement,
      outcomes: new Outcomes(this.#host.runtime, tenant, { feedback, costs }),
      redact: (text) => redactPersonalData(text, defined({ kinds: this.#settings.personalData })),
    };
  }

  #writer(): Writer | undefined {
    const { model: choice } = this.#settings;
    const { clock, log } = this.#host.runtime;
    const provider = choice && this.#needs.models.providers.find(({ id }) => id === choice.provider);
    return provider && { provider, model: choice.model, clock, log };
  }
}

/** The host itself, on behalf of a whole tenant. */
function hostCaller(tenant: string, tenantName: string): Caller {
  const subject = { tenant, tenantName, principal: HOST_PRINCIPAL, issuer: 'urn:capstan:host', lane: 'host' };
  return { subject, scopes: new Set(), keyId: HOST_PRINCIPAL, isTest: false };
}

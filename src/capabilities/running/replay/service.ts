import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { and, type Change } from '../../../runtime/change.ts';
import { createFork } from '../../../runtime/fork/create.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Host } from '../../capability.ts';
import type { Retention } from '../../operations/retention/door.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import type { Runs } from '../runs/door.ts';
import { checkSource, type ForkOptions, refuseUnknownNode, refuseUnknownVersion } from './rules.ts';

/** What replay needs of other capabilities. */
interface ReplayNeeds {
  readonly runs: Pick<Runs, 'check'>;
  readonly retention: Pick<Retention, 'expiry'>;
  readonly audit: Pick<Audit, 'entry'>;
}

/** Forks: runs that begin with the history of another run. */
export class ReplayService {
  readonly #host: Pick<Host, 'runtime' | 'executor'>;
  readonly #needs: ReplayNeeds;

  constructor(host: Pick<Host, 'runtime' | 'executor'>, needs: ReplayNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  /** Starts a run with the events of the source before `fromSeq`. */
  async fork(caller: Caller, sourceRunId: string, options: ForkOptions): Promise<Change<StartedRun> | Refusal> {
    const { runtime, executor } = this.#host;
    const { mode, fromSeq, overlay, trace } = options;
    const source = await runtime.reader.row(caller.subject, sourceRunId);
    if (!source) return this.#refuseMissing(caller, sourceRunId, fromSeq);
    const unfit = checkSource(source, fromSeq);
    if (unfit) return unfit;
    const workflow = await this.#workflowOf(source, overlay.workflowVersion);
    if (isRefusal(workflow)) return workflow;
    const refusal = mode === 'branch' ? await this.#checkOverlay(caller, source, workflow, overlay) : undefined;
    const full = refusal ?? (await runtime.storage.refusal(caller.subject.tenant));
    if (full) return full;
    const created = await createFork(runtime, { source, workflow, fromSeq, mode, overlay, by: caller.subject, trace });
    if ('unknownNode' in created) return refuseUnknownNode(created.unknownNode);
    const start = executor.startRun(created);
    const { reopenings = [] } = created.held.run.facts.fork!;
    const reopenedGates = reopenings.filter(({ before }) => before === fromSeq).flatMap(({ gates }) => gates);
    const details = {
      runId: start.result.runId,
      mode,
      fromSeq,
      ...(reopenedGates.length > 0 ? { reopenedGates } : {}),
    };
    return and(start, entryBy(this.#needs.audit, caller.subject, 'run.fork', sourceRunId, details));
  }

  /** A run that has expired is told apart from one that never existed. */
  async #refuseMissing({ subject }: Caller, sourceRunId: string, fromSeq: number): Promise<Refusal> {
    const expired = await this.#needs.retention.expiry(subject, sourceRunId);
    return expired ? { ...expired, details: { ...expired.details, sourceRunId, fromSeq } } : NOT_FOUND;
  }

  async #workflowOf(source: RunRow, version: number | undefined): Promise<PinnedPlan | Refusal> {
    const { workflow_owner: owner, workflow_id, workflow_version } = source;
    const plan = await this.#host.runtime.plans.find(owner, workflow_id, version ?? workflow_version);
    return plan ? { owner, plan } : refuseUnknownVersion();
  }

  /** The values of the overlay must be ones that the run could have been started with. */
  #checkOverlay(
    caller: Caller,
    source: RunRow,
    { plan }: PinnedPlan,
    { inputs, configurable, metadata }: ForkOptions['overlay'],
  ): Promise<Refusal | undefined> {
    const facts = factsOf(source);
    const given = {
      inputs: { ...facts.inputs, ...inputs },
      configurable: configurable ?? facts.configurable,
      metadata,
    };
    return this.#needs.runs.check(caller, given, plan);
  }
}

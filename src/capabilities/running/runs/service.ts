import type { Plan } from '../../../engine/definition/plan.ts';
import { cancelRun, pauseRun, resumeRun } from '../../../engine/run/commands.ts';
import type { Decision } from '../../../engine/run/decision.ts';
import { isTerminal, type Run } from '../../../engine/run/run.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import { FORKS_SHOWN_MAX, type RunSnapshot, type RunStatus } from '../../../protocol/running/runs.ts';
import { and, type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import { type CreatedRun, createRun, type NewRun } from '../../../runtime/creation.ts';
import { type MovedRun, moveRun } from '../../../runtime/move-run.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import {
  acquireScope,
  childRuns,
  type ForkRow,
  findScopeHolder,
  forkRuns,
  forksAmong,
  type ListedRun,
  type LoggedRow,
  lastEvents,
  type RunRow,
} from '../../../store/log.ts';
import { endQuarantine, findQuarantined, type QuarantinedRow } from '../../../store/queue.ts';
import { listRuns, type RunFilter } from '../../../store/run-lists.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import {
  MockProviders,
  type Pausing,
  type RunArguments,
  type RunCreation,
  type RunCreator,
  type Runs,
} from './door.ts';
import { outcomeIn } from './outcome.ts';
import { checkCreation, type RunRules } from './rules.ts';

/** Results that are longer are not read for a list. */
const LISTED_CHARS_MAX = 16_384;

/** It does not repeat the id: what stands there may be a secret that somebody pasted into the wrong place. */
const NO_WORKFLOW = refuse(
  'not_found',
  'There is no workflow with this workflowId, or you may not see it. GET /v1/host/capstan/workflows lists what there is.',
);

/** Runs, as people and other capabilities start, read and move them. */
export class RunService implements Runs {
  readonly #host: Pick<Host, 'runtime' | 'executor' | 'extensions'>;
  readonly #settings: Omit<RunRules, 'mockProviders'>;

  constructor(host: Pick<Host, 'runtime' | 'executor' | 'extensions'>, settings: Omit<RunRules, 'mockProviders'>) {
    this.#host = host;
    this.#settings = settings;
  }

  async create(caller: Caller, request: RunCreation): Promise<Change<StartedRun> | Refusal> {
    const { subject } = caller;
    const workflow = await this.#host.runtime.plans.current(subject, request.workflowId);
    if (!workflow) return NO_WORKFLOW;
    const scopeKey = request.scopeId === undefined ? undefined : sha256Hex(`${subject.tenant}\n${request.scopeId}`);
    const created = await this.#create(caller, workflow, { ...request, scopeKey });
    if (isRefusal(created)) return created;
    const { executor } = this.#host;
    if (!scopeKey) return request.takesFirstSteps ? executor.startWithFirstSteps(created) : executor.startRun(created);
    const start = executor.startRun(created);
    return and(start, this.#acquireScope(scopeKey, start.result.runId, request.exclusive));
  }

  async createPinned(caller: Caller, workflow: PinnedPlan, given: RunArguments): Promise<Change<StartedRun> | Refusal> {
    const created = await this.#create(caller, workflow, given);
    return isRefusal(created) ? created : this.#host.executor.startRun(created);
  }

  async #create(
    caller: Caller,
    workflow: PinnedPlan,
    given: RunArguments & Pick<NewRun, 'scopeKey'>,
  ): Promise<CreatedRun | Refusal> {
    const { runtime } = this.#host;
    const { subject } = caller;
    const refusal = (await this.check(caller, given, workflow.plan)) ?? (await runtime.storage.refusal(subject.tenant));
    return refusal ?? createRun(runtime, { ...given, subject, workflow, depth: 0 });
  }

  check(caller: RunCreator, given: RunArguments, plan: Plan): Promise<Refusal | undefined> {
    const { schemas: shared } = this.#host.runtime;
    const schemas = caller.subject ? shared.of(caller.subject.tenant) : shared;
    const mockProviders = given.configurable.mockProvider ? this.#host.extensions(MockProviders) : [];
    const rules = { models: this.#settings.models, mockProviders };
    return checkCreation(caller, given, plan, rules, schemas);
  }

  async snapshot(caller: Caller, runId: string): Promise<RunSnapshot | Refusal> {
    const { reader, store } = this.#host.runtime;
    const snapshot = await reader.view(caller.subject, runId, ({ run }) => snapshotOf(run, sha256Hex));
    if (!snapshot) return NOT_FOUND;
    const ref = { tenant: caller.subject.tenant, runId };
    const [children, forks] = await Promise.all([
      store.read<ListedRun>(childRuns(ref)),
      store.read<ListedRun>(forkRuns(ref, FORKS_SHOWN_MAX)),
    ]);
    return {
      ...snapshot,
      ...(children.length === 0 ? {} : { childRuns: children.map(related) }),
      ...(forks.length === 0 ? {} : { forks: forks.map(related) }),
    };
  }

  row(caller: Caller, runId: string): Promise<RunRow | undefined> {
    return this.#host.runtime.reader.row(caller.subject, runId);
  }

  async cancel(
    caller: Caller,
    runId: string,
    reason?: string,
  ): Promise<Change<{ readonly status: RunStatus }> | Refusal> {
    const cancelledBy = caller.subject.principal;
    const cancel = unlessManagement((run) => cancelRun(run, { reason, cancelledBy }));
    const moved = await this.#move(caller, runId, cancel);
    if (!isRefusal(moved) || moved.refused !== 'run_terminal') return moved;
    return unchanged({ status: moved.details?.runStatus as RunStatus });
  }

  pause(caller: Caller, runId: string, pausing: Pausing): Promise<Change<MovedRun> | Refusal> {
    const pausedBy = caller.subject.principal;
    return this.#move(
      caller,
      runId,
      unlessManagement((run) => pauseRun(run, { ...pausing, pausedBy })),
    );
  }

  async resume(caller: Caller, runId: string, reason?: string): Promise<Change<MovedRun> | Refusal> {
    const resumedBy = caller.subject.principal;
    const resumed = await this.#move(caller, runId, (run) => resumeRun(run, { reason, resumedBy }));
    // A quarantined run is tried once more, because a person asked for it.
    const endOfQuarantine = changeOf(undefined, [endQuarantine(runId)]);
    if (!isRefusal(resumed)) return and(resumed, endOfQuarantine);
    const { store, hub, clock } = this.#host.runtime;
    if (resumed.refused !== 'run_state_conflict') return resumed;
    const [quarantined] = await store.read<Pick<QuarantinedRow, 'work_id'>>(findQuarantined(caller.subject, runId));
    if (!quarantined) return resumed;
    const moved = { status: resumed.details?.runStatus as RunStatus, at: clock.now() };
    return changeOf(moved, endOfQuarantine.writes, { announce: [() => hub.wakeWorkers(runId)] });
  }

  list(caller: Caller, filter: RunFilter, limit: number): Promise<ListedRun[]> {
    return this.#host.runtime.store.read<ListedRun>(listRuns(caller.subject, filter, limit));
  }

  async forks({ subject: { tenant } }: Caller, runIds: readonly string[]): Promise<ReadonlyMap<string, ForkRow>> {
    if (runIds.length === 0) return new Map();
    const forks = await this.#host.runtime.store.read<ForkRow>(forksAmong(tenant, runIds));
    return new Map(forks.map((fork) => [fork.run_id, fork]));
  }

  async outcomes(rows: readonly ListedRun[]): Promise<ReadonlyMap<string, string>> {
    const ended = rows.filter(({ ended_at }) => ended_at !== null).map(({ run_id }) => run_id);
    if (ended.length === 0) return new Map();
    const last = await this.#host.runtime.store.read<Pick<LoggedRow, 'run_id' | 'body'>>(
      lastEvents(ended, LISTED_CHARS_MAX),
    );
    const found = last.map(({ run_id, body }) => [run_id, outcomeIn(JSON.parse(body) as RunEvent)] as const);
    return new Map(found.filter((entry): entry is [string, string] => entry[1] !== undefined));
  }

  #move(caller: Caller, runId: string, decide: (run: Run) => Decision): Promise<Change<MovedRun> | Refusal> {
    return moveRun(this.#host.runtime, caller.subject, runId, decide);
  }

  #acquireScope(scopeKey: string, runId: string, isExclusive: boolean): Change {
    return changeOf(undefined, acquireScope(scopeKey, runId, isExclusive), {
      refusals: { scope: () => this.#scopeTaken(scopeKey) },
    });
  }

  async #scopeTaken(scopeKey: string): Promise<Refusal> {
    const [holder] = await this.#host.runtime.store.read<{ run_id: string }>(findScopeHolder(scopeKey));
    const retryAfter = 1;
    return {
      ...refuse('run_already_active', 'A run with this scope is still active.', {
        activeRunId: holder?.run_id ?? null,
        activeHost: 'cloud',
        retryAfter,
      }),
      headers: { 'Retry-After': String(retryAfter) },
    };
  }
}

/** Management runs are moved by the proposal or goal that they belong to, and by nothing else. */
function unlessManagement(decide: (run: Run) => Decision): (run: Run) => Decision {
  return (run) => {
    if (!isManagement(run.facts.workflowId) || isTerminal(run)) return decide(run);
    return refuse('conflict', 'This run belongs to a proposal or a goal. Change the proposal or goal instead.');
  };
}

function related({ run_id, status }: ListedRun): { readonly runId: string; readonly status: RunStatus } {
  return { runId: run_id, status: status as RunStatus };
}

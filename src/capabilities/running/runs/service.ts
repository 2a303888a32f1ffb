import type { Plan } from '../../../engine/definition/plan.ts';
import { cancelRun, type Decision, pauseRun, resumeRun } from '../../../engine/run/commands.ts';
import { isTerminal, type Run, statusOf } from '../../../engine/run/run.ts';
import { snapshotOf } from '../../../engine/run/snapshot.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { DrainPolicy } from '../../../protocol/running/events.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Configurable, RunSnapshot, RunStatus } from '../../../protocol/running/runs.ts';
import { type Commanded, command, UnitRefused } from '../../../runtime/command.ts';
import { createRun } from '../../../runtime/creation.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import { childRuns, holderOfScope, listRuns, type RunFilter, type RunRow, takeScope } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Caller, Host } from '../../capability.ts';
import { type Creation, checkCreation } from './rules.ts';

export interface RunRequest {
  readonly workflowId: string;
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly scopeId?: string | undefined;
  /** Refuse if a live run has this scope. */
  readonly exclusive: boolean;
  readonly engineVersion?: number | undefined;
  readonly transport?: 'rest' | 'mcp' | undefined;
}

export interface StartedRun {
  readonly runId: string;
  readonly status: RunStatus;
}

/** What else to write in the transaction of a change, knowing what came of it. */
export type Also<T> = (outcome: T) => Unit;

export type RunService = ReturnType<typeof runService>;

export function runService({ runtime, executor, settings }: Host) {
  const { store, plans, reader } = runtime;

  return {
    /** Commits the run with its first event and its work item, then drives it here. */
    async create(caller: Caller, request: RunRequest, also: Also<StartedRun>): Promise<StartedRun | Refusal> {
      const workflow = await plans.current(caller.subject, request.workflowId);
      if (!workflow) return refuse('not_found', 'There is no such workflow.');
      const refusal = check(caller, request, workflow.plan);
      if (refusal) return refusal;
      return start(caller, request, workflow, also);
    },

    check,

    async snapshot(caller: Caller, runId: string): Promise<RunSnapshot | Refusal> {
      const snapshot = await reader.view(caller.subject, runId, ({ run }) => snapshotOf(run, sha256Hex));
      if (!snapshot) return NOT_FOUND;
      const children = await store.read<RunRow>(childRuns({ tenant: caller.subject.tenant, runId }));
      if (children.length === 0) return snapshot;
      return {
        ...snapshot,
        childRuns: children.map(({ run_id, status }) => ({ runId: run_id, status: status as RunStatus })),
      };
    },

    row: (caller: Caller, runId: string): Promise<RunRow | undefined> => reader.row(caller.subject, runId),

    /** A run that has ended stays as it ended: cancelling it changes nothing and is no error. */
    async cancel(
      caller: Caller,
      runId: string,
      reason: string | undefined,
      also: Also<Pick<Commanded, 'status'>>,
    ): Promise<Pick<Commanded, 'status'> | Refusal> {
      const cancelledBy = caller.subject.principal;
      const outcome = await command(
        runtime,
        caller.subject,
        runId,
        unlessOurs((run) => cancelRun(run, { reason, cancelledBy })),
        also,
      );
      if (!isRefusal(outcome) || outcome.refused !== 'run_terminal') return outcome;
      return { status: outcome.details?.runStatus as RunStatus };
    },

    pause: (
      caller: Caller,
      runId: string,
      pausing: { reason?: string | undefined; drainPolicy: DrainPolicy },
      also: Also<Commanded>,
    ): Promise<Commanded | Refusal> =>
      command(
        runtime,
        caller.subject,
        runId,
        unlessOurs((run) => pauseRun(run, { ...pausing, pausedBy: caller.subject.principal })),
        also,
      ),

    resume: (
      caller: Caller,
      runId: string,
      reason: string | undefined,
      also: Also<Commanded>,
    ): Promise<Commanded | Refusal> =>
      command(
        runtime,
        caller.subject,
        runId,
        (run) => resumeRun(run, { reason, resumedBy: caller.subject.principal }),
        also,
      ),

    list: (caller: Caller, filter: RunFilter, limit: number): Promise<RunRow[]> =>
      store.read<RunRow>(listRuns(caller.subject, filter, limit)),
  };

  /** Whether this caller may have a run of this workflow that is given these things. */
  function check(caller: Pick<Caller, 'isTest'>, creation: Creation, plan: Plan): Refusal | undefined {
    return checkCreation(caller, creation, plan, settings);
  }

  async function start(
    caller: Caller,
    request: RunRequest,
    workflow: PinnedPlan,
    also: Also<StartedRun>,
  ): Promise<StartedRun | Refusal> {
    const { subject } = caller;
    const scopeKey = request.scopeId === undefined ? undefined : sha256Hex(`${subject.tenant}\n${request.scopeId}`);
    const created = createRun(runtime, { ...request, subject, workflow, depth: 0, scopeKey });
    const { run } = created.held;
    const { runId } = run.facts;
    const started: StartedRun = { runId, status: statusOf(run) };
    try {
      await executor.launch(created, [
        ...(scopeKey ? takeScope(scopeKey, runId, request.exclusive) : []),
        ...also(started),
      ]);
    } catch (error) {
      if (error instanceof UnitRefused && error.broke === 'scope') return scopeTaken(scopeKey!);
      throw error;
    }
    return started;
  }

  async function scopeTaken(scopeKey: string): Promise<Refusal> {
    const [holder] = await store.read<{ run_id: string }>(holderOfScope(scopeKey));
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

/** Runs of the host's own are moved on by what they are about and by nothing else. */
function unlessOurs(decide: (run: Run) => Decision): (run: Run) => Decision {
  return (run) => {
    if (!isManagement(run.facts.workflowId) || isTerminal(run)) return decide(run);
    return refuse('conflict', 'This run tells of a proposal or a goal. Decide on that instead.');
  };
}

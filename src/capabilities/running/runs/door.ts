import type { Plan } from '../../../engine/definition/plan.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { TraceContext } from '../../../protocol/format/trace.ts';
import type { DrainPolicy } from '../../../protocol/running/events.ts';
import type { Configurable, RunSnapshot, RunStatus } from '../../../protocol/running/runs.ts';
import type { Change } from '../../../runtime/change.ts';
import type { MovedRun } from '../../../runtime/move-run.ts';
import type { PinnedPlan } from '../../../runtime/plans.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import type { ForkRow, ListedRun, RunRow } from '../../../store/log.ts';
import type { RunFilter } from '../../../store/run-lists.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** Who wants to create a run: a caller, or the host itself. */
export type RunCreator = Pick<Caller, 'isTest'> & Partial<Pick<Caller, 'subject'>>;

/** Starting, reading, cancelling, pausing and finding runs. */
export interface Runs {
  /** Starts a run of the current version of a workflow. */
  create(caller: Caller, request: RunCreation): Promise<Change<StartedRun> | Refusal>;
  /** Starts a run of a definition that need not be a registered workflow. */
  createPinned(caller: Caller, workflow: PinnedPlan, given: RunArguments): Promise<Change<StartedRun> | Refusal>;
  /** Refuses what this caller may not give to a run of this workflow. */
  check(caller: RunCreator, given: RunArguments, plan: Plan): Promise<Refusal | undefined>;
  snapshot(caller: Caller, runId: string): Promise<RunSnapshot | Refusal>;
  row(caller: Caller, runId: string): Promise<RunRow | undefined>;
  /** Cancels a run. A run that has ended keeps its status, which is not an error. */
  cancel(caller: Caller, runId: string, reason?: string): Promise<Change<{ readonly status: RunStatus }> | Refusal>;
  pause(caller: Caller, runId: string, pausing: Pausing): Promise<Change<MovedRun> | Refusal>;
  resume(caller: Caller, runId: string, reason?: string): Promise<Change<MovedRun> | Refusal>;
  /** Runs that the filter selects, newest first. */
  list(caller: Caller, filter: RunFilter, limit: number): Promise<ListedRun[]>;
  /** What those of some runs are forks of that are forks, by their ids. */
  forks(caller: Caller, runIds: readonly string[]): Promise<ReadonlyMap<string, ForkRow>>;
  /** The beginning of what came of runs that have ended, by their ids. Very long results are left out. */
  outcomes(rows: readonly ListedRun[]): Promise<ReadonlyMap<string, string>>;
}

/** The door to runs. */
export const Runs = door<Runs>()('runs');

/**
 * Mock model providers that runs of test keys may name: the protocol has `configurable.mockProvider` and its refusals on
 * every host. A host in production has none of them.
 */
export interface MockProviders {
  readonly ids: readonly string[];
  /** Refuses a provider that does not exist or a config that it does not take. */
  readonly check: (mock: NonNullable<Configurable['mockProvider']>) => Refusal | undefined;
}

/** The mock providers of the host. */
export const MockProviders = extensionPoint<MockProviders>('mockProviders');

/** What a caller hands to a new run. */
export interface RunArguments {
  readonly inputs: JsonObject;
  readonly configurable: Configurable;
  readonly tags?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly engineVersion?: number | undefined;
}

/** A request to create a run. */
export interface RunCreation extends RunArguments {
  readonly workflowId: string;
  readonly scopeId?: string | undefined;
  /** Refuse if a live run has this scope. */
  readonly exclusive: boolean;
  readonly trace?: TraceContext | undefined;
  readonly transport?: 'rest' | 'mcp' | undefined;
  /**
   * The first steps may be taken before the run is stored, and may end it. Not for a start whose unit has more that must
   * be stored when the run ends: a lock, a callback, a goal.
   */
  readonly takesFirstSteps?: boolean | undefined;
}

/** How a run is paused. */
export interface Pausing {
  readonly reason?: string | undefined;
  readonly drainPolicy: DrainPolicy;
}

import type { RunFacts } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { RunTrace } from '../protocol/format/trace.ts';

/** Something that was done for a run outside its log: an effect of a node, or a delivery to a webhook. */
export interface Activity {
  readonly runId: string;
  readonly workflowId?: string | undefined;
  readonly trace: RunTrace;
  readonly spanId: string;
  readonly parentSpanId: string;
}

/** How an activity is shown. Only names and numbers of the host's own: never what a caller, a node or a model said. */
export interface ActivityReport {
  /** What was called, as the last part of the span's name: a provider, `http`, `mcp`, `webhook`. */
  readonly provider: string;
  /** Whether the request left this process. */
  readonly isRemote: boolean;
  readonly attributes: JsonObject;
  /** The code of the error, if it failed. */
  readonly errorCode?: string | undefined;
}

/** How an activity came out: its result, or what it threw. */
export type ActivityOutcome<T> = { readonly result: T } | { readonly error: unknown };

/** Records traces. A host without telemetry has none, and nothing of it is called. */
export interface Tracing {
  /** The trace of a run: its caller's, or one that begins with it. The flags say whether it is recorded. */
  traceOf(run: Pick<RunFacts, 'runId' | 'trace'>): RunTrace;
  /** Whether anybody wants to know of the activities of this trace: it is recorded, or activities are counted. */
  isObserved(trace: RunTrace): boolean;
  /** Performs an activity, counts it and records its span; `report` says how it is shown, or that it is not. */
  observe<T>(
    activity: Activity,
    perform: () => Promise<T>,
    report: (outcome: ActivityOutcome<T>) => ActivityReport | undefined,
  ): Promise<T>;
}

/** The trace of a run; without telemetry, runs have only those that callers began. */
export function traceOf(
  { tracing }: { readonly tracing?: Tracing | undefined },
  run: Pick<RunFacts, 'runId' | 'trace'>,
): RunTrace | undefined {
  return tracing ? tracing.traceOf(run) : run.trace;
}

import type { OutputBudget } from '../../engine/limits/output-budget.ts';
import type { Allowance } from '../../engine/models/budget.ts';
import type { TraceHeaders } from '../../protocol/format/trace.ts';

/** The circumstances of one effect. */
export interface Firing {
  /** The idempotency key: the same for every attempt at this effect. */
  readonly effectId: string;
  readonly signal: AbortSignal;
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly runId: string;
  readonly nodeId: string;
  /** The headers that make a request part of the run's trace; none if the run has no trace. */
  readonly trace?: TraceHeaders | undefined;
  /** What comes back may be this large. */
  readonly budget?: OutputBudget | undefined;
  /** What a model call may use, if the run has a budget. */
  readonly allowance?: Allowance | undefined;
}

/** What performs the effects behind one seam. */
export type SeamDriver<Request, Result> = (request: Request, firing: Firing) => Promise<Result>;

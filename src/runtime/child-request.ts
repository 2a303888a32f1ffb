import type { KnownValues } from '../engine/masking/known-values.ts';
import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';

/** A child run that a node asks for. */
export interface ChildRequest {
  readonly workflowId: string;
  /** Inputs of the child, which override the defaults of its variables. */
  readonly variables: JsonObject;
  /** A supervisor sends it: the transitions of the handoff are recorded. */
  readonly isHandoff?: boolean;
}

/** How a child run ended, as its parent's node sees it. */
export interface ChildResult {
  readonly runId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly variables: JsonObject;
  /** Outputs of its last nodes, by node id. */
  readonly outputs?: Readonly<Record<string, JsonObject>>;
  /** The values in it that are sensitive in the child, and so in its parent. */
  readonly known?: KnownValues | undefined;
  /** The outputs with sensitive values masked. */
  readonly shown?: JsonObject;
  readonly error?: RunError | undefined;
}

import type { TSchema } from 'typebox';
import type { ConfigProblem } from '../engine/definition/check.ts';
import type { InterruptRequest } from '../engine/people/interrupts.ts';
import type { NodeResult } from '../engine/run/outcome.ts';
import type { ChildState } from '../engine/run/run.ts';
import type { OrchestratorDecision } from '../protocol/ai/agents.ts';
import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent, Owner } from '../protocol/running/events.ts';
import type { Configurable } from '../protocol/running/runs.ts';
import type { WorkflowDefinition, WorkflowNode } from '../protocol/running/workflows.ts';
import type { Effects } from './effects/seams.ts';

/** What a node of some type does. It can reach what its context has, and nothing else. */
export interface NodeType {
  readonly typeId: string;
  /** A `pure` node may run again at any time; a `side-effect` touches the world, through `effects` alone. */
  readonly role: 'pure' | 'side-effect';
  /** The shape of its config, checked when a definition is registered. */
  readonly config?: TSchema;
  /** What is wrong with a config whose shape is right. */
  check?(config: JsonObject): readonly ConfigProblem[];
  /** It asks for approval; a workflow may loop through it. */
  readonly isGate?: boolean;
  /** It starts any number of children, and is asked again whenever one of them is over. */
  readonly fansOut?: boolean;
  /** Capabilities without which it must not run. */
  readonly requires?: readonly string[];
  run(context: NodeContext): Outcome | Promise<Outcome>;
}

export interface NodeContext {
  readonly runId: string;
  readonly owner: Owner;
  readonly workflow: Pick<WorkflowDefinition, 'id' | 'name' | 'defaults' | 'nodes' | 'edges'>;
  readonly node: WorkflowNode;
  readonly config: JsonObject;
  /** All input ports; `declared` only those that the definition names. */
  readonly inputs: JsonObject;
  readonly declared: JsonObject;
  readonly variables: JsonObject;
  /** Inputs and variables as others may see them: without what the definition marks as sensitive. */
  shown(): { readonly inputs: JsonObject; readonly variables: JsonObject };
  readonly configurable: Configurable;
  /** Counts the attempts at this node, from 0. */
  readonly attempt: number;
  /** Counts the times that an edge has led back here. Effects are the same ones for all attempts of a visit. */
  readonly visit: number;
  /** When this attempt started, by the log: the same after a restart. */
  readonly startedAt: number;
  readonly now: () => number;
  /** Aborted when nobody waits for the outcome any more. */
  readonly signal: AbortSignal;
  /** What somebody answered to the interrupt that an earlier call of this node raised. */
  readonly answer: { readonly value: unknown } | undefined;
  /** Questions that this node has had answered. */
  readonly answers: number;
  /** What the supervisor of the run has decided so far, turn by turn. */
  readonly decisions: readonly OrchestratorDecision[];
  /** An outgoing edge has a condition, so the outcome can be routed by it. */
  readonly isRouted: boolean;
  /** How the child run ended that an earlier call of this node asked for. */
  readonly child: ChildResult | undefined;
  /** The child runs of this attempt, in the order in which it asked for them. */
  readonly children: readonly ChildState[];
  /** How one of them ended. */
  childResult(runId: string): Promise<ChildResult>;
  readonly effects: Effects;
  /** Waits, unless nobody waits for the outcome any more. */
  sleep(ms: number): Promise<void>;
  /** Writes to the log while the node goes on. */
  emit(event: NewEvent): void;
  /** Writes what an agent does, step by step. Called again, a node goes through the same steps: each is written once. */
  tell(step: NewEvent): void;
}

/** What came of calling a node. Nodes that wait say so and are called again: they hold nothing in memory. */
export type Outcome =
  | { readonly done: NodeResult }
  | { readonly failed: RunError }
  | { readonly sleepUntil: number }
  | { readonly interrupt: InterruptRequest }
  | { readonly child: ChildRequest }
  /** More children; none to wait for those that there are. Only for a type that `fansOut`. */
  | { readonly children: readonly ChildRequest[] };

export interface ChildRequest {
  readonly workflowId: string;
  /** Variables of the child that override its defaults. */
  readonly variables: JsonObject;
}

export interface ChildResult {
  readonly runId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly variables: JsonObject;
  /** Of the nodes that it ended with. */
  readonly outputs?: Readonly<Record<string, JsonObject>>;
  /** The same as others may see them. */
  readonly shown?: JsonObject;
  readonly error?: RunError | undefined;
}

/** Thrown by a node or an effect to fail the attempt with a code of its own. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
  readonly error: RunError;

  constructor(error: RunError) {
    super(error.message);
    this.error = error;
  }
}

export function invalid(message: string): Outcome {
  return { failed: { code: 'validation_error', message, retryable: false } };
}

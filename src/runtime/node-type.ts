import type { TSchema } from 'typebox';
import type { ConfigProblem, SchemaAt } from '../engine/definition/check.ts';
import type { OutputBudget } from '../engine/limits/output-budget.ts';
import type { InterruptRequest } from '../engine/people/interrupts.ts';
import type { NodeResult } from '../engine/run/outcome.ts';
import type { ChildState } from '../engine/run/run.ts';
import type { OrchestratorDecision } from '../protocol/ai/agents.ts';
import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { TraceHeaders } from '../protocol/format/trace.ts';
import type { NewEvent, Owner } from '../protocol/running/events.ts';
import type { Configurable } from '../protocol/running/runs.ts';
import type { WorkflowDefinition, WorkflowNode } from '../protocol/running/workflows.ts';
import type { Unit } from '../store/sql.ts';
import type { ChildRequest, ChildResult } from './child-request.ts';
import type { Effects } from './effects/seams.ts';
import { NodeFailure } from './node-failure.ts';
import type { SchemaValidator } from './validation/schema-validator.ts';

export { NodeFailure } from './node-failure.ts';

/** Whether an attempt that ends with this error is the last one of its node. */
export function isFinal(error: unknown, { isLastAttempt }: Pick<NodeContext, 'isLastAttempt'>): error is NodeFailure {
  return error instanceof NodeFailure && (isLastAttempt || error.error.retryable === false);
}

/** The implementation of a node type. Its `run` gets everything through the context and reaches nothing else. */
export interface NodeType {
  readonly typeId: string;
  /** One sentence for people who choose a type in an editor. */
  readonly description: string;
  /** A `pure` node may be called again at any time, also by a replay; a `side-effect` node uses `context.effects`. */
  readonly role: 'pure' | 'side-effect';
  /** Whether this node uses effects, though its type is pure. */
  usesEffects?(node: WorkflowNode, workflow: Pick<WorkflowDefinition, 'metadata'>): boolean;
  /**
   * Schema of the node's config, validated when a definition is registered. Keys that it does not list are refused at
   * every depth, except where it has `additionalProperties`; without a schema the node takes no config.
   */
  readonly config?: TSchema;
  /** Finds problems that the schema cannot express; called only with a config that fits it but for unknown keys. */
  check?(config: JsonObject): readonly ConfigProblem[];
  /** Finds inputs that are fixed in the definition and that the node would refuse. */
  checkInputs?(inputs: WorkflowNode['inputs']): readonly ConfigProblem[];
  /** The JSON Schemas in a config, which must be valid; called only with a config that has no other problem. */
  schemas?(config: JsonObject): readonly SchemaAt[];
  /** Every output that a node can have, so that a misspelt one is found; absent if the config or an answer decides. */
  outputs?(node: Pick<WorkflowNode, 'config' | 'inputs'>): readonly string[];
  /** The outputs that a node usually has, where whoever answers it may add others: another name gets a warning. */
  usualOutputs?(node: Pick<WorkflowNode, 'config'>): readonly string[] | undefined;
  /** The input ports that nodes of this type read, so that a misspelt one is found; absent if they may read any. */
  readonly inputs?: readonly string[];
  /** Those of them without which a node fails, so that one which nothing gives is noticed. */
  readonly requiredInputs?: readonly string[];
  /** The variables that a node sets besides those that the workflow declares. */
  writes?(node: Pick<WorkflowNode, 'config'>): readonly string[];
  /** The node asks for approval, so a workflow may have a cycle through it. */
  readonly isGate?: boolean;
  /** Whether a node with this config asks for approval, for types that also do other things. */
  asksApproval?(config: JsonObject): boolean;
  /** The model that the node asks may send envelopes; see `ai/envelopes`. */
  readonly readsEnvelopes?: boolean;
  /** The node asks models and does nothing else that lasts, so a preview may call it again. */
  readonly asksModel?: boolean;
  /** The node may start any number of children; it is called again whenever one of them has ended. */
  readonly fansOut?: boolean;
  /** Set if agents may call the node as a tool. */
  readonly tool?: NodeAsTool;
  /** Set if the host knows the type and cannot run it; the protocol has such a node fail without being started. */
  readonly lacks?: LackOfCapability;
  /** Called for every attempt, and again after an interrupt, a sleep, a child or a crash. */
  run(context: NodeContext): Outcome | Promise<Outcome>;
}

/** Why nodes of a type cannot run on this host. */
interface LackOfCapability {
  /** The id of the capability, which the error names. */
  readonly capability: string;
  /** Events that precede the failure of a node. */
  reasons?(nodeId: string): readonly NewEvent[];
}

/** What agents and those who allow them know of a node that is a tool. */
export interface NodeAsTool {
  readonly description: string;
  readonly safety: 'pure' | 'read' | 'write';
  /** JSON Schema of the inputs. */
  readonly inputs: TSchema;
}

/** Whether the node may be called again at any time, also by a replay. */
export function isPure(
  type: NodeType | undefined,
  node: WorkflowNode,
  workflow: Pick<WorkflowDefinition, 'metadata'>,
): type is NodeType {
  return type?.role === 'pure' && !type.usesEffects?.(node, workflow);
}

/** Everything that one call of a node can read and do. */
export interface NodeContext {
  readonly runId: string;
  readonly owner: Owner;
  readonly workflow: Pick<WorkflowDefinition, 'id' | 'name' | 'defaults' | 'nodes' | 'edges' | 'metadata'>;
  readonly node: WorkflowNode;
  readonly config: JsonObject;
  /** The values of all input ports. */
  readonly inputs: JsonObject;
  /** The values of the input ports that the definition names. */
  readonly declared: JsonObject;
  readonly variables: JsonObject;
  /** Inputs and variables with the values masked that the definition marks as sensitive. */
  masked(): { readonly inputs: JsonObject; readonly variables: JsonObject };
  readonly configurable: Configurable;
  /** Number of this attempt, from 0. */
  readonly attempt: number;
  /** Whether no retry is left: a failure of this attempt fails the node. */
  readonly isLastAttempt: boolean;
  /** How often a loop has come back to this node. Attempts of the same visit share their effects' idempotency keys. */
  readonly visit: number;
  /** When this attempt started by the log, so it is the same when the node is called again. */
  readonly startedAt: number;
  /** The current time; on a replay, the time in the source run. */
  readonly now: () => number;
  /** Aborted when the run no longer waits for this attempt. */
  readonly signal: AbortSignal;
  /** The answer to the interrupt that an earlier call of this node raised. */
  readonly answer: { readonly value: unknown } | undefined;
  /** The answers to all interrupts of this visit, in order. */
  readonly answers: readonly unknown[];
  /** How many interrupts of this node have been answered. */
  readonly answerCount: number;
  /** The decisions of the run's supervisor so far, in order. */
  readonly decisions: readonly OrchestratorDecision[];
  /** Whether an outgoing edge is meant for these outputs of an approval that was not granted, or of a failed verification. */
  routes(outputs: JsonObject): boolean;
  /** The result of the child run that an earlier call of this node asked for. */
  readonly child: ChildResult | undefined;
  /** The child runs of this attempt, in the order of the requests. */
  readonly children: readonly ChildState[];
  /** The result of one of them; it must have ended. */
  childResult(runId: string): Promise<ChildResult>;
  /** Validates with JSON Schemas of callers, which the node must not compile itself. */
  readonly schemas: SchemaValidator;
  /** The only way to the outside world; on a replay every effect fails. */
  readonly effects: Effects;
  /** Texts and lists that a node builds are taken from here piece by piece; too much fails the attempt. */
  readonly budget: OutputBudget;
  /** The store's side of the attempt, for node types whose work is done by others. */
  readonly holder: Holder;
  /** Waits in memory; fails the attempt if it, or the signal that is given, is aborted meanwhile. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Records events while the node is running: all of them, or after a crash none. */
  emit(event: NewEvent, ...more: readonly NewEvent[]): void;
  /**
   * Records a log line or a piece of text. An attempt whose code is called again must repeat them in order: each is
   * recorded once.
   */
  emitShown(event: NewEvent): void;
  /** Records a step of an agent. A node that is called again must repeat its steps in order: each is recorded once. */
  emitStep(step: NewEvent): void;
}

/** Whose run it is in the store, and the right to write while the run is held. */
interface Holder {
  readonly tenant: string;
  readonly workspace: string | undefined;
  /** Commits writes after everything recorded so far; false if one of their expectations failed. */
  commit(unit: Unit): Promise<boolean>;
  /** The headers that make requests of this attempt part of the run's trace; none if the run has no trace. */
  trace(): TraceHeaders | undefined;
}

/** The outcome of one call. A node that waits returns what it waits for and is called again, so it holds no memory. */
export type Outcome =
  | { readonly done: NodeResult }
  | { readonly failed: RunError }
  /** With `orWoken` the node is called again earlier if somebody wakes the run. */
  | { readonly sleepUntil: number; readonly orWoken?: true }
  | { readonly interrupt: InterruptRequest }
  | { readonly child: ChildRequest }
  /** Asks for more children; an empty list waits for the existing ones. Only for a type that `fansOut`. */
  | { readonly children: readonly ChildRequest[] };

/** The outcome of a node whose inputs or config are invalid; a retry would fail as well. */
export function invalid(message: string): Outcome {
  return { failed: { code: 'validation_error', message, retryable: false } };
}

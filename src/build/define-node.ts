import type { RunError } from '../protocol/errors.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { NodeFailure } from '../runtime/node-failure.ts';
import { callSiteOf } from './call-site.ts';
import type { ValueOf, ValueSchema } from './value-schema.ts';

/**
 * What a node may do: a `pure` one computes and may be called again at any time, also by a replay; a `read` one looks at
 * the outside world; a `write` one changes it. The last two do so through `effect`.
 */
export type Safety = 'pure' | 'read' | 'write';

/** What the code of an effect gets. */
export interface EffectCall {
  /** The same however often this effect is attempted: send it to the service, so that it recognises a repetition. */
  readonly idempotencyKey: string;
  /** Headers that make its requests part of the run's trace: add them to yours. Empty if the run has no trace. */
  readonly traceHeaders: Readonly<Record<string, string>>;
  /** Aborted when the run no longer waits for the node. */
  readonly signal: AbortSignal;
}

/** A question to a person. */
export interface Question {
  /** What the person reads. */
  readonly prompt: string;
  /** JSON Schema of the answer; forms are made from it. Any answer fits by default. */
  readonly answer?: JsonObject;
  /** How long to wait; without it the node waits as long as it takes. */
  readonly timeoutMs?: number;
}

/** How a child run ended. */
export interface ChildOutcome {
  readonly runId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Its variables at the end. */
  readonly variables: JsonObject;
  /** Outputs of its last nodes, by node id. */
  readonly outputs: Readonly<Record<string, JsonObject>>;
  readonly error?: RunError | undefined;
}

/** What every node gets. */
export interface PureCall<Config, Inputs> {
  readonly config: Config;
  readonly inputs: Inputs;
  readonly runId: string;
  readonly nodeId: string;
  /** The tenant that the run belongs to. */
  readonly tenant: string;
  /** Number of this attempt, from 0. */
  readonly attempt: number;
  /** The current time in ms; on a replay, the time of the source run. */
  readonly now: () => number;
  /** Aborted when the run no longer waits for this attempt. */
  readonly signal: AbortSignal;
}

/**
 * What a node gets that touches the world or waits. Its code is called again from the start after a wait or a crash:
 * effects, answers, sleeps and children that it already has are then given from the record, in the same order.
 */
export interface NodeCall<Config, Inputs> extends PureCall<Config, Inputs> {
  /**
   * Does something outside, once: its result is recorded, and every later call gets the record. If the host dies in the
   * middle, it is attempted again with the same idempotency key.
   */
  effect<T>(name: string, perform: (call: EffectCall) => T | Promise<T>): Promise<T>;
  /** Asks a person and waits, for days if need be; nothing is kept in memory. */
  ask(question: Question): Promise<unknown>;
  /** Waits for an event from outside whose members equal those of `correlation`. */
  waitForEvent(eventType: string, correlation: JsonObject, options?: { readonly timeoutMs?: number }): Promise<unknown>;
  /** Waits; nothing is kept in memory. */
  sleep(ms: number): Promise<void>;
  /** Waits until a time in ms. */
  sleepUntil(time: number): Promise<void>;
  /** Starts a run of a workflow and waits for its end. */
  runWorkflow(workflowId: string, inputs?: JsonObject): Promise<ChildOutcome>;
  /** Shows text while the node is working, each piece once; another attempt shows its own. */
  stream(text: string): void;
  /** Adds a line to the event log of the run, once; another attempt adds its own. */
  log(message: string, fields?: JsonObject): void;
}

/** The definition of a node. */
export interface NodeDefinition<
  S extends Safety,
  C extends ValueSchema | undefined,
  I extends ValueSchema | undefined,
  O extends ValueSchema | undefined,
> {
  /** `<yours>.<name>`, for example `acme.fetchInvoice`. */
  readonly typeId: string;
  /** One sentence that says what it does; people and models read it. */
  readonly description: string;
  readonly safety: S;
  /** What authors of workflows set; checked when a workflow is registered. */
  readonly config?: C;
  /** What arrives at the input ports; checked before the code is called. */
  readonly inputs?: I;
  /** What the code returns; checked before anything else sees it. */
  readonly outputs?: O;
  /** The longest that one attempt may take. A longer one fails and may be retried. */
  readonly timeoutMs?: number;
  /** Whether agents may call it as a tool, `openwop:<typeId>`. */
  readonly tool?: boolean;
  readonly run: (call: CallOf<S, Given<C>, Given<I>>) => Given<O> | Promise<Given<O>>;
}

type Given<Schema> = Schema extends ValueSchema ? ValueOf<Schema> : JsonObject;
type CallOf<S extends Safety, Config, Inputs> = S extends 'pure' ? PureCall<Config, Inputs> : NodeCall<Config, Inputs>;

/** A node of your own, as `defineNode` returns it. */
export interface OwnNode<
  S extends Safety = Safety,
  C extends ValueSchema | undefined = ValueSchema | undefined,
  I extends ValueSchema | undefined = ValueSchema | undefined,
  O extends ValueSchema | undefined = ValueSchema | undefined,
> extends Omit<NodeDefinition<S, C, I, O>, 'run'> {
  readonly kind: 'node';
  /** The place in the code, for problems. */
  readonly definedAt?: string | undefined;
  readonly run: (call: never) => unknown;
}

const TYPE_ID = /^[a-z][a-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+$/;
const SAFETIES: readonly Safety[] = ['pure', 'read', 'write'];
/** Prefixes of the protocol and of this host. */
const RESERVED = ['core', 'openwop', 'conformance', 'vendor'];

/** Defines a node in code. The types of `run` follow from the schemas. */
export function defineNode<
  const S extends Safety,
  C extends ValueSchema | undefined = undefined,
  I extends ValueSchema | undefined = undefined,
  O extends ValueSchema | undefined = undefined,
>(definition: NodeDefinition<S, C, I, O>): OwnNode<S, C, I, O> {
  const { typeId, safety } = definition;
  if (!TYPE_ID.test(typeId)) {
    throw new TypeError(`${JSON.stringify(typeId)} is not a type id. Name it like "acme.fetchInvoice".`);
  }
  if (RESERVED.includes(typeId.split('.', 1)[0]!)) {
    throw new TypeError(`${typeId}: ${RESERVED.join(', ')} are reserved. Begin it with a name of your own.`);
  }
  if (!SAFETIES.includes(safety)) {
    throw new TypeError(
      `${typeId}: its safety is ${JSON.stringify(safety)}. It must be one of ${SAFETIES.join(', ')}.`,
    );
  }
  const run = definition.run as (call: never) => unknown;
  return Object.freeze({ ...definition, kind: 'node' as const, definedAt: callSiteOf(defineNode), run });
}

/** An error that a retry would not change: the node fails at once. */
export function fatal(code: string, message: string, details?: JsonObject): Error {
  return new NodeFailure({ code, message, retryable: false, ...(details ? { details } : {}) });
}

/** An error that may pass: the node is tried again as its retry settings say. */
export function retryable(code: string, message: string, details?: JsonObject): Error {
  return new NodeFailure({ code, message, retryable: true, ...(details ? { details } : {}) });
}

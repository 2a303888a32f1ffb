import type { Plan, PlannedNode } from '../engine/definition/plan.ts';
import { maskMembers } from '../engine/masking/mask.ts';
import { mayCallTools } from '../engine/models/budget.ts';
import { isTerminal, type NodeState, type Run, visibleVariables } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Lease } from '../store/queue.ts';
import { StoreFailure } from '../store/store.ts';
import { sha256Hex } from '../system/digest.ts';
import { redactText } from '../system/redaction.ts';
import { childResult, type PreparedChildren } from './children.ts';
import { LeaseLost, performOnce } from './effects/ledger.ts';
import type { ModelResult } from './effects/model.ts';
import { ModelCalls } from './effects/model-calls.ts';
import { type Effects, SEAMS, type SeamName } from './effects/seams.ts';
import { SOURCE_MISSING } from './fork/source-missing.ts';
import { type ChildResult, type NodeContext, NodeFailure, type NodeType, type Outcome } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** Something that an attempt in flight has to say. */
export type Message =
  | { readonly nodeId: string; readonly attempt: number; readonly outcome: Outcome }
  | { readonly nodeId: string; readonly attempt: number; readonly event: NewEvent }
  | ({ readonly nodeId: string; readonly attempt: number } & PreparedChildren)
  /** The store or the lease failed under the attempt, which says nothing about the node. */
  | { readonly broken: Error };

/** More effects than a node can have in one visit. */
const EFFECTS_PER_VISIT = 1_000_000;

/** What a call is told besides what the log says. */
export interface Call {
  readonly child?: ChildResult | undefined;
  /** The node's idea of the time; the clock's where this is silent. */
  readonly now?: () => number;
}

interface InFlight {
  readonly attempt: number;
  readonly controller: AbortController;
}

export interface AttemptHooks {
  /** What attempts say comes in here, at any time. */
  readonly say: (message: Message) => void;
  /** Settles once everything recorded so far is in the store: no effect happens before that. */
  readonly written: () => Promise<void>;
  /** The run as it is by now. */
  readonly run: () => Run;
}

/** The attempts at nodes that run in this process. They hold no state that the log does not have. */
export class Attempts {
  readonly #runtime: Runtime;
  readonly #lease: Lease;
  readonly #hooks: AttemptHooks;
  readonly #inFlight = new Map<string, InFlight>();
  readonly #models: ModelCalls;

  constructor(runtime: Runtime, lease: Lease, hooks: AttemptHooks) {
    this.#runtime = runtime;
    this.#lease = lease;
    this.#hooks = hooks;
    this.#models = new ModelCalls(hooks.run);
  }

  get count(): number {
    return this.#inFlight.size;
  }

  isRunning(nodeId: string): boolean {
    return this.#inFlight.has(nodeId);
  }

  /** Calls a node. An outcome comes back at once where the node can give it at once, and as a message otherwise. */
  begin(type: NodeType, planned: PlannedNode, held: HeldRun, call: Call): Outcome | undefined {
    const { id: nodeId } = planned.node;
    const { attempt, inputs } = held.run.nodes[planned.index]!;
    if (inputs?.problem) return { failed: inputs.problem };
    const current = { attempt, controller: new AbortController() };
    // What a node says before it first waits counts, too.
    this.#inFlight.set(nodeId, current);
    const outcome = callNode(type, this.#contextOf(planned, held, current.controller.signal, call));
    if (!(outcome instanceof Promise)) {
      this.#inFlight.delete(nodeId);
      return outcome;
    }
    this.#listen(
      nodeId,
      current,
      outcome.then((settled) => ({ outcome: settled })),
    );
    return undefined;
  }

  /** Waits for the children that a node asked for. */
  await(nodeId: string, attempt: number, prepared: Promise<PreparedChildren>): void {
    const current = { attempt, controller: new AbortController() };
    this.#inFlight.set(nodeId, current);
    this.#listen(nodeId, current, prepared);
  }

  /** Cuts attempts that the run, as it is now, does not wait for. */
  cutLost(run: Run): void {
    for (const [nodeId, { attempt }] of this.#inFlight) {
      const state = run.nodes[run.plan.node(nodeId)!.index]!;
      if (!isExpected(state, attempt)) this.cut(nodeId);
    }
  }

  /** Cuts what goes on at a node, if anything does: what it has said is lost. */
  cut(nodeId: string): void {
    this.#inFlight.get(nodeId)?.controller.abort();
    this.#inFlight.delete(nodeId);
  }

  cutAll(): void {
    for (const nodeId of [...this.#inFlight.keys()]) this.cut(nodeId);
  }

  #listen(nodeId: string, current: InFlight, work: Promise<{ outcome: Outcome } | PreparedChildren>): void {
    const { attempt } = current;
    const arrive = (message: Message): void => {
      if (this.#inFlight.get(nodeId) !== current) return;
      this.#inFlight.delete(nodeId);
      this.#hooks.say(message);
    };
    work.then(
      (result) => arrive({ nodeId, attempt, ...result }),
      (error) => {
        const isOurs = error instanceof StoreFailure || error instanceof LeaseLost;
        arrive(isOurs ? { broken: error } : { nodeId, attempt, outcome: failureOf(error) });
      },
    );
  }

  #contextOf(
    { node, index, outgoing }: PlannedNode,
    { run, identity }: HeldRun,
    signal: AbortSignal,
    { child, now = this.#runtime.clock.now }: Call,
  ): NodeContext {
    const { attempt, startedAt, inputs, answer, visit, agentSteps = 0, interrupts, children = [] } = run.nodes[index]!;
    const { tenant, workspace } = identity.subject;
    const { runId, configurable, fork, owner } = run.facts;
    const all = inputs?.all ?? {};
    // A copy: the run goes on while the node works.
    const variables: JsonObject = Object.assign(Object.create(null), visibleVariables(run));
    return {
      runId,
      owner,
      workflow: run.plan.definition,
      node,
      config: node.config,
      inputs: all,
      declared: inputs?.declared ?? {},
      variables,
      shown: () => shownOf(run.plan, node.id, all, variables),
      configurable,
      attempt,
      visit,
      startedAt: startedAt!,
      now,
      signal,
      answer,
      answers: interrupts,
      decisions: [...run.decisions],
      isRouted: outgoing.some(({ condition }) => condition !== undefined),
      child,
      children,
      childResult: (childRunId) => childResult(this.#runtime, { tenant, runId: childRunId }),
      effects:
        fork?.mode === 'replay'
          ? NO_EFFECTS
          : this.#effectsFor({ tenant, workspace, runId, nodeId: node.id }, visit, signal),
      sleep: (ms) => sleepUnlessCut(this.#runtime, ms, signal),
      emit: (event) => this.#say(node.id, signal, event),
      tell: after(agentSteps, (event) => this.#say(node.id, signal, event)),
    };
  }

  /** A tool is not called for a run that is over, or that has called as many as it may. */
  #mayUseTools(): undefined {
    const run = this.#hooks.run();
    if (!isTerminal(run) && !run.failure?.abort && mayCallTools(run)) return undefined;
    const message = 'The run is over, or has called as many tools as it may.';
    throw new NodeFailure({ code: 'budget_exhausted', message, retryable: false });
  }

  /** An attempt that was cut is heard no more, even where the same attempt has begun anew. */
  #say(nodeId: string, signal: AbortSignal, event: NewEvent): void {
    const current = this.#inFlight.get(nodeId);
    if (current?.controller.signal === signal) this.#hooks.say({ nodeId, attempt: current.attempt, event });
  }

  /**
   * The seams, numbered in the order in which the node goes through them: the number is part of the identity. A node
   * that a loop leads back to means its effects anew.
   */
  #effectsFor(
    { workspace, ...scope }: { tenant: string; workspace: string | undefined; runId: string; nodeId: string },
    visit: number,
    signal: AbortSignal,
  ): Effects {
    const { tenant, runId, nodeId } = scope;
    const { written } = this.#hooks;
    let ordinal = visit * EFFECTS_PER_VISIT;
    let place = 0;
    const through = async (seam: SeamName, request: unknown): Promise<unknown> => {
      const effect = { ...scope, ordinal: ordinal++, providerKey: seam };
      const fire = this.#runtime.seams[seam] as (request: unknown, firing: object) => Promise<unknown>;
      const perform = (more: object): Promise<unknown> =>
        performOnce(this.#runtime.store, this.#lease, effect, (effectId) =>
          fire(request, { effectId, signal, tenant, workspace, runId, nodeId, ...more }),
        );
      if (seam === 'tool') return written().then(() => this.#mayUseTools() ?? perform({}));
      if (seam !== 'model') return written().then(() => perform({}));
      const say = (event: NewEvent): void => this.#say(nodeId, signal, event);
      const ask = perform as (more: object) => Promise<ModelResult>;
      const result = await this.#models.call({ nodeId, place, written, perform: ask, say });
      place++;
      return result;
    };
    const names = Object.keys(SEAMS) as SeamName[];
    return Object.fromEntries(names.map((seam) => [seam, (request: unknown) => through(seam, request)])) as Effects;
  }
}

function callNode(type: NodeType, context: NodeContext): Outcome | Promise<Outcome> {
  try {
    return type.run(context);
  } catch (error) {
    return failureOf(error);
  }
}

/** Leaves out as many events as there are already. */
function after(count: number, say: (event: NewEvent) => void): (event: NewEvent) => void {
  let place = 0;
  return (event) => {
    if (place++ >= count) say(event);
  };
}

function shownOf(plan: Plan, nodeId: string, inputs: JsonObject, variables: JsonObject) {
  const masked = (values: JsonObject, names: ReadonlySet<string> | undefined): JsonObject =>
    maskMembers(values, (name) => names?.has(name) === true, plan.maskingMode, sha256Hex);
  return {
    inputs: masked(inputs, plan.sensitivePorts.get(nodeId)),
    variables: masked(variables, plan.sensitive),
  };
}

/** Nothing goes through a seam on a replay, whatever a node says of itself. */
const NO_EFFECTS = Object.fromEntries(
  Object.keys(SEAMS).map((seam) => [seam, () => Promise.reject(new NodeFailure(SOURCE_MISSING))]),
) as unknown as Effects;

function isExpected(state: NodeState, attempt: number): boolean {
  return (state.status === 'running' || state.status === 'waiting') && state.attempt === attempt;
}

function sleepUnlessCut({ clock }: Runtime, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      reject(
        new NodeFailure({ code: 'cancelled', message: 'Nobody waits for the outcome any more.', retryable: false }),
      );
    });
  });
}

function failureOf(error: unknown): Outcome {
  if (error instanceof NodeFailure) return { failed: error.error };
  return { failed: { code: 'node_failed', message: redactText((error as Error)?.message || 'The node failed.') } };
}

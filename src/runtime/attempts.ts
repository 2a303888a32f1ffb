import type { PlannedNode } from '../engine/definition/plan.ts';
import { OutputLimitExceeded } from '../engine/limits/output-budget.ts';
import { OutputGuard } from '../engine/limits/output-limits.ts';
import { learnValues } from '../engine/masking/learning.ts';
import { hasSensitiveParts, maskMembers } from '../engine/masking/mask.ts';
import type { Ports } from '../engine/masking/sensitivity.ts';
import { isRouted } from '../engine/people/verdict.ts';
import { scopeOf } from '../engine/run/inputs.ts';
import type { Fork, NodeState, Run } from '../engine/run/run.ts';
import { visibleVariables } from '../engine/run/visible-variables.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import { guardLease, type Lease } from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import { sha256Hex } from '../system/digest.ts';
import { redactText } from '../system/redaction.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { withoutMessage } from '../system/without-message.ts';
import type { ChildResult } from './child-request.ts';
import { childResult, type PreparedChildren } from './children.ts';
import { EffectCalls, type EffectJournal, type EffectScope } from './effects/effect-calls.ts';
import { LeaseLost } from './effects/ledger.ts';
import { ModelCalls } from './effects/model-calls.ts';
import { type Effects, SEAMS, type SeamDrivers } from './effects/seams.ts';
import { traceAttempt } from './effects/trace-effect.ts';
import { SOURCE_MISSING } from './fork/source-missing.ts';
import { invalid, type NodeContext, NodeFailure, type NodeType, type Outcome } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { checkWrites } from './validation/channel-writes.ts';
import { UnusableSchema } from './validation/schema-validator.ts';

/** A message from an attempt in flight to the drive. */
export type Message =
  | { readonly nodeId: string; readonly attempt: number; readonly outcome: Outcome }
  /** Recorded together, so that a crash loses all of them or none. */
  | { readonly nodeId: string; readonly attempt: number; readonly events: readonly NewEvent[] }
  | ({ readonly nodeId: string; readonly attempt: number } & PreparedChildren)
  /** The host or the lease failed during the attempt, which is no failure of the node. */
  | { readonly broken: Error };

/** What a node is called with besides what the log says. */
interface Call {
  readonly child?: ChildResult | undefined;
  /** The time that the node sees; the clock's by default, the source's on a replay. */
  readonly now?: () => number;
}

interface InFlight {
  readonly attempt: number;
  readonly controller: AbortController;
}

/** How attempts talk to the drive that they belong to. */
interface AttemptHooks extends EffectJournal {
  /** Receives the messages of attempts, at any time. */
  readonly send: (message: Message) => void;
  /** The current state of the run. */
  readonly run: () => Run;
}

/** The attempts in flight of one run. They hold no state that the log does not have. */
export class Attempts {
  readonly #runtime: Runtime;
  readonly #lease: Lease;
  readonly #hooks: AttemptHooks;
  readonly #inFlight = new Map<string, InFlight>();
  readonly #models: ModelCalls;
  readonly #guard: OutputGuard;

  constructor(runtime: Runtime, lease: Lease, hooks: AttemptHooks) {
    this.#runtime = runtime;
    this.#lease = lease;
    this.#hooks = hooks;
    this.#models = new ModelCalls(hooks.run);
    this.#guard = new OutputGuard(runtime.outputLimits);
  }

  get count(): number {
    return this.#inFlight.size;
  }

  isRunning(nodeId: string): boolean {
    return this.#inFlight.has(nodeId);
  }

  /** Calls a node. A synchronous outcome is returned; an asynchronous one arrives as a message. */
  begin(type: NodeType, planned: PlannedNode, held: HeldRun, call: Call): Outcome | undefined {
    const { id: nodeId } = planned.node;
    this.#learn(call.child);
    const { attempt, inputs } = held.run.nodes[planned.index]!;
    if (inputs?.problem) return { failed: inputs.problem };
    const current = { attempt, controller: new AbortController() };
    // Registered before the call, so that events which the node emits before its first await are accepted.
    this.#inFlight.set(nodeId, current);
    this.#runtime.watchdog.note(`node ${type.typeId}`);
    const outcome = this.#checked(
      held.run,
      this.#call(type, this.#contextOf(planned, held, current.controller.signal, call)),
    );
    if (!(outcome instanceof Promise)) {
      this.#inFlight.delete(nodeId);
      if ('done' in outcome || 'failed' in outcome) this.#runtime.synchronousTypes.add(type);
      return this.#bounded(nodeId, outcome);
    }
    this.#runtime.synchronousTypes.delete(type);
    this.#listen(
      nodeId,
      current,
      outcome.then((settled) => ({ outcome: this.#bounded(nodeId, settled) })),
    );
    return undefined;
  }

  #call(type: NodeType, context: NodeContext): Outcome | Promise<Outcome> {
    try {
      return type.run(context);
    } catch (error) {
      return this.#failureOf(context.node.id, error);
    }
  }

  /** The outcome of an attempt that threw. The run shows the message of an exception; where it came from is logged. */
  #failureOf(nodeId: string, error: unknown): Outcome {
    const known = knownFailure(error);
    if (known) return known;
    const { facts, plan, known: values } = this.#hooks.run();
    const { typeId } = plan.node(nodeId)!.node;
    // The message may quote what the run masks everywhere else.
    const err = values || hasSensitiveParts(plan) ? withoutMessage(error) : error;
    this.#runtime.log.warn({ runId: facts.runId, nodeId, typeId, err }, 'the code of a node threw an exception');
    return { failed: { code: 'node_failed', message: redactText((error as Error)?.message || 'The node failed.') } };
  }

  /** What is sensitive in a child is sensitive in its parent, as soon as the parent gets its result. */
  #learn(child: ChildResult | undefined): void {
    if (child?.known) learnValues(this.#hooks.run(), child.known);
  }

  /** The outcome, unless it is too large for the run: then the attempt fails, before any event is made of it. */
  #bounded(nodeId: string, outcome: Outcome): Outcome {
    try {
      if ('done' in outcome) this.#guard.checkResult(this.#hooks.run(), outcome.done);
      if ('interrupt' in outcome) this.#guard.checkQuestion(this.#hooks.run(), outcome.interrupt);
      return outcome;
    } catch (error) {
      return this.#failureOf(nodeId, error);
    }
  }

  /** Waits until the children that a node asked for are prepared. */
  awaitChildren(nodeId: string, attempt: number, prepared: Promise<PreparedChildren>): void {
    const current = { attempt, controller: new AbortController() };
    this.#inFlight.set(nodeId, current);
    this.#listen(nodeId, current, prepared);
  }

  /** Aborts attempts that the run no longer waits for, and all of them while it is paused. */
  abortObsolete(run: Run): void {
    for (const [nodeId, { attempt }] of this.#inFlight) {
      const state = run.nodes[run.plan.node(nodeId)!.index]!;
      if (run.pause || !isExpected(state, attempt)) this.abort(nodeId);
    }
  }

  /** Aborts the attempt at a node, if there is one; its messages are ignored from now on. */
  abort(nodeId: string): void {
    this.#inFlight.get(nodeId)?.controller.abort();
    this.#inFlight.delete(nodeId);
  }

  abortAll(): void {
    for (const nodeId of [...this.#inFlight.keys()]) this.abort(nodeId);
  }

  #listen(nodeId: string, current: InFlight, work: Promise<{ outcome: Outcome } | PreparedChildren>): void {
    const { attempt } = current;
    const arrive = (message: Message): void => {
      if (this.#inFlight.get(nodeId) !== current) return;
      this.#inFlight.delete(nodeId);
      this.#hooks.send(message);
    };
    work.then(
      (result) => arrive({ nodeId, attempt, ...result }),
      (error) => {
        const isOurs = error instanceof TemporaryFailure || error instanceof LeaseLost;
        arrive(isOurs ? { broken: error } : { nodeId, attempt, outcome: this.#failureOf(nodeId, error) });
      },
    );
  }

  /** Validates what the node writes to channels; synchronous where there is nothing to validate. */
  #checked(run: Run, outcome: Outcome | Promise<Outcome>): Outcome | Promise<Outcome> {
    if (outcome instanceof Promise)
      return outcome.then((settled) => checkWrites(run.plan, settled, this.#runtime.schemas));
    return checkWrites(run.plan, outcome, this.#runtime.schemas);
  }

  #contextOf(
    { node, index, outgoing, maxRetries }: PlannedNode,
    { run, identity }: HeldRun,
    signal: AbortSignal,
    { child, now = this.#runtime.clock.now }: Call,
  ): NodeContext {
    const state = run.nodes[index]!;
    const {
      attempt,
      startedAt,
      inputs,
      answer,
      answers = [],
      visit,
      agentSteps = 0,
      shown = 0,
      interrupts,
      children = [],
    } = state;
    const { tenant, workspace } = identity.subject;
    const { runId, configurable, owner } = run.facts;
    const all = inputs?.all ?? {};
    // A copy, because the run moves on while the node is working.
    const variables: JsonObject = Object.assign(Object.create(null), visibleVariables(run));
    const scope = { tenant, workspace, run, node, attempt };
    return {
      runId,
      owner,
      workflow: run.plan.definition,
      node,
      config: node.config,
      inputs: all,
      declared: inputs?.declared ?? {},
      variables,
      masked: () => maskedOf(run, node.id, all, variables),
      configurable,
      attempt,
      isLastAttempt: state.failures >= maxRetries,
      visit,
      startedAt: startedAt!,
      now,
      signal,
      answer,
      answers,
      answerCount: interrupts,
      decisions: [...run.decisions],
      routes: (outputs) => isRouted(outgoing, scopeOf(run), outputs),
      child,
      children,
      childResult: async (childRunId) => {
        const result = await childResult(this.#runtime, { tenant, runId: childRunId });
        this.#learn(result);
        return result;
      },
      schemas: this.#runtime.schemas.of(tenant),
      effects: this.#effectsFor(scope, visit, signal),
      budget: this.#guard.forOutput(),
      holder: this.#holderOf(scope),
      sleep: (ms, other) => sleepUnlessAborted(this.#runtime, ms, other ? AbortSignal.any([signal, other]) : signal),
      emit: (...events) => this.#send(node.id, signal, ...events),
      emitShown: after(shown, (event: NewEvent) => this.#send(node.id, signal, event)),
      emitStep: after(agentSteps, (event: NewEvent) => this.#send(node.id, signal, event)),
    };
  }

  /** On whose behalf the node keeps something. A replay keeps nothing. */
  #holderOf({ tenant, workspace, run, node, attempt }: EffectScope): NodeContext['holder'] {
    return {
      tenant,
      workspace,
      commit: run.facts.fork?.mode === 'replay' ? noSource : (unit) => this.#commitAfter(unit),
      trace: () => traceAttempt(this.#runtime, { run, node, attempt }),
    };
  }

  /** Commits writes of a node once everything before them is committed, and only while this host has the run. */
  async #commitAfter(unit: Unit): Promise<boolean> {
    await this.#hooks.committed();
    const outcome = await this.#runtime.store.commit([guardLease(this.#lease, false), ...unit]);
    if (!outcome.committed && outcome.failedExpectation === 'lease') throw new LeaseLost('another host has this run');
    return outcome.committed;
  }

  /** Drops messages of an aborted attempt, even when the same attempt was started again. */
  #send(nodeId: string, signal: AbortSignal, ...events: NewEvent[]): void {
    const current = this.#inFlight.get(nodeId);
    if (current?.controller.signal !== signal) return;
    const { attempt } = current;
    try {
      this.#guard.checkEvents(this.#hooks.run(), events);
    } catch (error) {
      this.abort(nodeId);
      this.#hooks.send({ nodeId, attempt, outcome: this.#failureOf(nodeId, error) });
      return;
    }
    this.#hooks.send({ nodeId, attempt, events });
  }

  /** The seams that a run reaches through: a replay has none, a preview those that touch nothing but models. */
  #seamsFor(fork: Fork | undefined): SeamDrivers | undefined {
    if (fork?.mode !== 'replay') return this.#runtime.seams;
    return fork.preview === undefined ? undefined : this.#runtime.previewSeams;
  }

  #effectsFor(scope: EffectScope, visit: number, signal: AbortSignal): Effects {
    const seams = this.#seamsFor(scope.run.facts.fork);
    if (!seams) return NO_EFFECTS;
    return new EffectCalls(scope, {
      runtime: this.#runtime,
      lease: this.#lease,
      seams,
      models: this.#models,
      visit,
      signal,
      journal: this.#hooks,
      current: this.#hooks.run,
      budget: () => this.#guard.forOutput(),
      emit: (event) => this.#send(scope.node.id, signal, event),
    });
  }
}

/** Skips the first `count` events: they are in the log already. */
function after(count: number, say: (event: NewEvent) => void): (event: NewEvent) => void {
  let place = 0;
  return (event) => {
    if (place++ >= count) say(event);
  };
}

function maskedOf({ plan, known }: Run, nodeId: string, inputs: JsonObject, variables: JsonObject) {
  const masked = (values: JsonObject, names: Ports | undefined): JsonObject => {
    const byPlace = maskMembers(values, (name) => names?.has(name) === true, plan.maskingMode, sha256Hex);
    return known ? known.mask(byPlace) : byPlace;
  };
  return {
    inputs: masked(inputs, plan.sensitivePorts.get(nodeId)),
    variables: masked(variables, plan.sensitive),
  };
}

/** On a replay every effect fails, even of a node type that claims to be pure. */
const NO_EFFECTS = Object.fromEntries(Object.keys(SEAMS).map((seam) => [seam, noSource])) as unknown as Effects;

async function noSource(): Promise<never> {
  throw new NodeFailure(SOURCE_MISSING);
}

function isExpected(state: NodeState, attempt: number): boolean {
  return (state.status === 'running' || state.status === 'waiting') && state.attempt === attempt;
}

function sleepUnlessAborted({ clock }: Runtime, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      reject(
        new NodeFailure({
          code: 'cancelled',
          message: 'The attempt was aborted: the run no longer waits for it.',
          retryable: false,
        }),
      );
    });
  });
}

/** The outcome of a failure that a node or the host has words for; undefined for any other exception. */
function knownFailure(error: unknown): Outcome | undefined {
  if (error instanceof NodeFailure || error instanceof OutputLimitExceeded) return { failed: error.error };
  if (error instanceof UnusableSchema) return invalid(`A JSON Schema cannot be used: ${error.message}.`);
  return undefined;
}

import type { OutputBudget } from '../../engine/limits/output-budget.ts';
import { mayCallTools } from '../../engine/models/budget.ts';
import { isTerminal, type Run } from '../../engine/run/run.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { WorkflowNode } from '../../protocol/running/workflows.ts';
import type { Lease } from '../../store/queue.ts';
import type { Write } from '../../store/sql.ts';
import { NodeFailure } from '../node-failure.ts';
import type { Runtime } from '../runtime.ts';
import { EFFECTS_PER_VISIT, type IntendedEffect, namedEffect, performOnce } from './ledger.ts';
import type { ModelResult } from './model.ts';
import type { ModelCalls } from './model-calls.ts';
import type { Effects, SeamDrivers, SeamName, SeamRequest, SeamResult, StepRequest } from './seams.ts';
import { traceEffect } from './trace-effect.ts';

/** Seams to what people and other runs read: sensitive values of a run stay out of it. */
const READABLE_SEAMS: ReadonlySet<SeamName> = new Set(['memory', 'annotate']);

/** The node that performs effects, and where. */
export interface EffectScope {
  readonly tenant: string;
  readonly workspace: string | undefined;
  readonly run: Run;
  readonly node: WorkflowNode;
  readonly attempt: number;
}

/** What the effects of a node need of the run that it belongs to. */
export interface EffectJournal {
  /** Resolves once everything recorded so far is committed; no effect is performed before that. */
  committed(): Promise<void>;
  /** Whether no outcome waits for a commit. */
  isSettled(): boolean;
  /** Adds the outcome of an effect of a node to the next commit. */
  recordOutcome(nodeId: string, outcome: Write): void;
}

/** For attempts that get to no effect: those of a replay, and those at nodes of a run that is not stored. */
export const WITHOUT_OUTCOMES: Pick<EffectJournal, 'isSettled' | 'recordOutcome'> = {
  isSettled: () => true,
  recordOutcome: (nodeId) => {
    throw new Error(`node ${nodeId} has performed an effect where none can be recorded`);
  },
};

/** What the effects of a call are performed with. */
interface EffectOptions {
  readonly runtime: Pick<Runtime, 'store' | 'tracing'>;
  readonly lease: Lease;
  readonly seams: SeamDrivers;
  readonly models: Pick<ModelCalls, 'call'>;
  /** How often a loop has come back to the node. */
  readonly visit: number;
  readonly signal: AbortSignal;
  readonly journal: EffectJournal;
  /** The current state of the run. */
  readonly current: () => Run;
  readonly budget: () => OutputBudget;
  /** Records an event of the node. */
  readonly emit: (event: NewEvent) => void;
}

/**
 * The effects of one call of a node. They are numbered in the order in which the node performs them, and the number is
 * part of the effect's identity; a later visit of a loop has numbers of its own.
 */
export class EffectCalls implements Effects {
  readonly #scope: EffectScope;
  readonly #options: EffectOptions;
  #count = 0;
  #modelCalls = 0;
  /** How often each name of a step was used. */
  #steps: Map<string, number> | undefined;

  constructor(scope: EffectScope, options: EffectOptions) {
    this.#scope = scope;
    this.#options = options;
  }

  async model(request: SeamRequest<'model'>): Promise<ModelResult> {
    const { models, journal, emit } = this.#options;
    const perform = this.#prepare('model', request);
    const written = (): Promise<void> => journal.committed();
    const call = { nodeId: this.#scope.node.id, place: this.#modelCalls, written, perform, say: emit };
    const result = await models.call(call);
    this.#modelCalls++;
    return result;
  }

  async tool(request: SeamRequest<'tool'>): Promise<SeamResult<'tool'>> {
    const perform = this.#prepare('tool', request);
    await this.#options.journal.committed();
    checkTools(this.#options.current());
    return perform();
  }

  annotate(request: SeamRequest<'annotate'>): Promise<SeamResult<'annotate'>> {
    return this.#afterCommit('annotate', request);
  }

  prompts(request: SeamRequest<'prompts'>): Promise<SeamResult<'prompts'>> {
    return this.#afterCommit('prompts', request);
  }

  http(request: SeamRequest<'http'>): Promise<SeamResult<'http'>> {
    return this.#afterCommit('http', request);
  }

  mail(request: SeamRequest<'mail'>): Promise<SeamResult<'mail'>> {
    return this.#afterCommit('mail', request);
  }

  kv(request: SeamRequest<'kv'>): Promise<SeamResult<'kv'>> {
    return this.#afterCommit('kv', request);
  }

  memory(request: SeamRequest<'memory'>): Promise<SeamResult<'memory'>> {
    return this.#afterCommit('memory', request);
  }

  agent(request: SeamRequest<'agent'>): Promise<SeamResult<'agent'>> {
    return this.#afterCommit('agent', request);
  }

  verifiers(request: SeamRequest<'verifiers'>): Promise<SeamResult<'verifiers'>> {
    return this.#afterCommit('verifiers', request);
  }

  envelopeKind(request: SeamRequest<'envelopeKind'>): Promise<SeamResult<'envelopeKind'>> {
    return this.#afterCommit('envelopeKind', request);
  }

  step(request: SeamRequest<'step'>): Promise<SeamResult<'step'>> {
    return this.#afterCommit('step', request);
  }

  async #afterCommit<S extends SeamName>(seam: S, asked: SeamRequest<S>): Promise<SeamResult<S>> {
    const { journal } = this.#options;
    const perform = this.#prepare(seam, asked);
    // An outcome that is not stored yet may be one of this effect, from an attempt before: the claim must not overtake it.
    if (!journal.isSettled()) await journal.committed();
    return perform({}, journal.committed());
  }

  /** Numbers an effect now; the function performs it, unless an earlier attempt has. */
  #prepare<S extends SeamName>(
    seam: S,
    asked: SeamRequest<S>,
  ): (more?: object, committed?: Promise<void>) => Promise<SeamResult<S>> {
    const { runtime, lease, journal, seams, signal, current, budget } = this.#options;
    const { tenant, workspace, run, node, attempt } = this.#scope;
    const { known } = current();
    const request = known && READABLE_SEAMS.has(seam) ? known.mask(asked) : asked;
    const place = { tenant, runId: run.facts.runId, nodeId: node.id };
    const effect = { ...place, ...this.#identify(seam, asked) };
    const drive = seams[seam];
    const recordOutcome = (outcome: Write): void => journal.recordOutcome(node.id, outcome);
    return (more = {}, committed) => {
      const fire = (effectId: string): Promise<SeamResult<S>> => {
        const { headers: trace, observe } = traceEffect(runtime, { run, node, attempt, seam, request, effectId });
        const firing = { ...place, workspace, effectId, signal, trace, budget: budget(), ...more };
        return observe ? observe(() => drive(request, firing)) : drive(request, firing);
      };
      return performOnce({ store: runtime.store, lease, recordOutcome }, effect, { signal, committed, fire });
    };
  }

  #identify(seam: SeamName, asked: unknown): Pick<IntendedEffect, 'ordinal' | 'providerKey'> {
    const { visit } = this.#options;
    if (seam !== 'step') return { ordinal: visit * EFFECTS_PER_VISIT + this.#count++, providerKey: seam };
    // Own code may start several at once, so their names tell them apart, not the order in which they start.
    const { name } = asked as StepRequest;
    this.#steps ??= new Map();
    const count = this.#steps.get(name) ?? 0;
    this.#steps.set(name, count + 1);
    return namedEffect(visit, name, count);
  }
}

/** Fails the attempt when the run has ended or its `maxToolCalls` is used up. */
function checkTools(run: Run): void {
  if (!isTerminal(run) && !run.failure?.abort && mayCallTools(run)) return;
  const message = 'The run has ended, or has used up its tool calls.';
  throw new NodeFailure({ code: 'budget_exhausted', message, retryable: false });
}

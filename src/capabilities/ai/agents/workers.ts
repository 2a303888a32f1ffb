import { type Finding, judgeLocally } from '../../../engine/judging/verdict.ts';
import { type ChildState, isOver } from '../../../engine/run/run.ts';
import { deepEqual, type JsonObject, own } from '../../../protocol/format/json.ts';
import type { Verifier } from '../../../protocol/learning/verifiers.ts';
import type { EventPayload, NewEvent } from '../../../protocol/running/events.ts';
import type { ChildRequest, ChildResult } from '../../../runtime/child-request.ts';
import { type NodeContext, NodeFailure, type Outcome } from '../../../runtime/node-type.ts';
import { pickVariables } from '../../running/nodes/door.ts';
import { type Join, type JoinPolicy, joinOf } from './join.ts';
import type { WorkerReport } from './supervisor.ts';

/** The most workers of one decision that run at the same time. */
export const FAN_OUT_MAX = 16;

/** What a dispatch node says about its workers. */
interface WorkerConfig {
  readonly fanOutPolicy?: 'sequential' | 'reject' | 'parallel';
  readonly joinPolicy?: JoinPolicy;
  readonly maxConcurrency?: number;
  readonly revisions?: number;
  readonly inputMapping?: Record<string, string>;
  readonly perWorkerInputMappings?: Record<string, Record<string, string>>;
  readonly outputMapping?: Record<string, string>;
  readonly perWorkerOutputMappings?: Record<string, Record<string, string>>;
}

type Phase = EventPayload<'core.workflowChain.event'>['phase'];

type Verdict = EventPayload<'agent.verified'>['verdict'];

/** A worker that has ended, as far as the join is concerned: one that its verifier rejected has failed. */
interface Ended {
  readonly workerId: string;
  readonly child: ChildState;
  readonly result: ChildResult;
  /** What the verifier found, and what follows from it; nothing without a verifier or a result. */
  readonly judged: { readonly finding: Finding; readonly verdict: Verdict } | undefined;
  readonly isAccepted: boolean;
}

/**
 * The workers that a supervisor sends, as child runs of the dispatch node. The node is called again whenever one of them
 * has ended. What it then learns about a worker is recorded once: the end, the verdict, what was taken from its variables.
 */
export class Workers {
  readonly reports: WorkerReport[] = [];
  readonly #context: NodeContext;
  readonly #config: WorkerConfig;
  readonly #verifier: Verifier | undefined;
  readonly #variables: JsonObject;
  readonly #turnsMax: number;
  #revisions = 0;
  /** The last verdict on each worker. */
  readonly #accepted = new Map<string, boolean>();
  #outputs: JsonObject = {};

  constructor(context: NodeContext, verifier: Verifier | undefined, turnsMax: number) {
    this.#context = context;
    this.#config = context.config as WorkerConfig;
    this.#verifier = verifier;
    this.#turnsMax = turnsMax;
    this.#variables = { ...context.variables };
  }

  /** The outputs of the dispatch node, by the workers that were sent last. */
  get outputs(): JsonObject {
    return this.#outputs;
  }

  /** How often a worker was sent again because of its verdict; each time counts as a turn. */
  get revisions(): number {
    return this.#revisions;
  }

  /** Workers whose last result was rejected by the verifier. */
  get rejected(): string[] {
    return [...this.#accepted].flatMap(([workerId, isAccepted]) => (isAccepted ? [] : [workerId]));
  }

  /** Runs the workers of one decision; undefined once they have done enough. Turns are counted from 0. */
  async send(turn: number, workerIds: readonly string[]): Promise<Outcome | undefined> {
    const { fanOutPolicy } = this.#config;
    if (workerIds.length > 1 && fanOutPolicy === 'reject') {
      throw failure('fan_out_unsupported', 'The fanOutPolicy of this node allows one worker at a time.');
    }
    const children = this.#context.children.filter((child) => child.turn === turn + 1);
    return fanOutPolicy === 'parallel' ? this.#atOnce(workerIds, children) : this.#oneByOne(turn, workerIds, children);
  }

  async #oneByOne(
    turn: number,
    workerIds: readonly string[],
    children: readonly ChildState[],
  ): Promise<Outcome | undefined> {
    const { revisions = 0 } = this.#config;
    let place = 0;
    for (const workerId of workerIds) {
      for (let left = revisions; ; left--) {
        const child = children[place++];
        if (!child) return { children: [this.#request(workerId)] };
        if (!isOver(child)) return { children: [] };
        const mayRevise = left > 0 && turn + 1 + this.#revisions < this.#turnsMax;
        const ended = await this.#examine(workerId, child, mayRevise);
        if (child.report === undefined) this.#record([...this.#endOf(ended), ...this.#harvest(ended)]);
        this.#report(ended);
        this.#outputs = { childRunId: child.runId, childStatus: child.status };
        if (ended.judged?.verdict !== 'revise') break;
        this.#revisions++;
      }
    }
    return undefined;
  }

  /** Starts as many workers as may run at the same time, until the join is decided; then cancels the others. */
  async #atOnce(workerIds: readonly string[], children: readonly ChildState[]): Promise<Outcome | undefined> {
    const ended = await this.#endedOf(workerIds, children);
    this.#record(ended.flatMap((each) => (each.child.report === undefined ? this.#endOf(each) : [])));
    const statuses = ended.map(({ isAccepted, child }) => (isAccepted ? child.status : 'failed'));
    const join = joinOf(this.#config.joinPolicy ?? {}, workerIds.length, statuses);
    if (!join) {
      const { maxConcurrency = FAN_OUT_MAX } = this.#config;
      const room = Math.min(maxConcurrency, FAN_OUT_MAX) - (children.length - ended.length);
      const waiting = workerIds.slice(children.length);
      return { children: waiting.slice(0, Math.max(0, room)).map((workerId) => this.#request(workerId)) };
    }
    this.#settle(join, ended.slice(0, join.counted), workerIds, children);
    return undefined;
  }

  /** The workers that have ended, in the order in which this node learnt of it: that is the order of the log. */
  async #endedOf(workerIds: readonly string[], children: readonly ChildState[]): Promise<Ended[]> {
    const over = [...children.entries()].filter(([, child]) => isOver(child) || child.report !== undefined);
    const place = ({ report }: ChildState): number => report ?? Number.POSITIVE_INFINITY;
    over.sort(([, a], [, b]) => (place(a) < place(b) ? -1 : Number(place(a) > place(b))));
    // One that was cancelled because of the join, and has not ended yet, came after those that decided it.
    const known = over.filter(([, child]) => isOver(child));
    return Promise.all(known.map(([index, child]) => this.#examine(workerIds[index]!, child, false)));
  }

  /** Takes over the outputs in the order of the ends, and leaves the workers that are still running to themselves. */
  #settle({ outcome }: Join, counted: readonly Ended[], workerIds: readonly string[], children: readonly ChildState[]) {
    const late = children.flatMap((child, index) =>
      isOver(child) || child.report !== undefined
        ? []
        : [this.#phase('child.cancelled', workerIds[index]!, child.runId)],
    );
    this.#record([...counted.flatMap((each) => (each.child.isHarvested ? [] : this.#harvest(each))), ...late]);
    for (const each of counted) this.#report(each);
    const { onChildFailure } = this.#config.joinPolicy ?? {};
    const errors = new Map(counted.map(({ child, result }) => [child.runId, result.error]));
    this.#outputs = {
      joinOutcome: outcome,
      children: children.map((child, index) => {
        const error = onChildFailure === 'absorb' ? undefined : errors.get(child.runId);
        const childStatus = isOver(child) ? child.status : 'cancelled';
        return { workflowId: workerIds[index]!, childRunId: child.runId, childStatus, ...(error ? { error } : {}) };
      }),
    };
  }

  #request(workflowId: string): ChildRequest {
    const { perWorkerInputMappings, inputMapping = {} } = this.#config;
    const mapping = own(perWorkerInputMappings, workflowId) ?? inputMapping;
    return { workflowId, variables: pickVariables(mapping, this.#variables), isHandoff: true };
  }

  async #examine(workerId: string, child: ChildState, mayRevise: boolean): Promise<Ended> {
    const result = await this.#context.childResult(child.runId);
    const finding = result.status === 'completed' ? this.#judge(result) : undefined;
    const judged = finding && { finding, verdict: verdictOn(finding, mayRevise) };
    return { workerId, child, result, judged, isAccepted: finding?.satisfied ?? true };
  }

  #judge({ runId, status, outputs = {}, variables }: ChildResult): Finding | undefined {
    const judged = { run: { runId, status }, outputs, variables, annotations: [] };
    return this.#verifier && judgeLocally(this.#verifier, judged);
  }

  #report({ workerId, child, isAccepted, result }: Ended): void {
    if (result.status === 'completed') this.#accepted.set(workerId, isAccepted);
    this.reports.push({ workflowId: workerId, status: isAccepted ? child.status : 'rejected' });
  }

  /** That a worker has ended, and what the verifier says of it: before anything is taken over. */
  #endOf({ workerId, child, result, judged }: Ended): NewEvent[] {
    const phase = `child.${result.status}` as const;
    const ended = this.#phase(phase, workerId, child.runId);
    return judged ? [ended, this.#verified(child.runId, judged.finding, judged.verdict)] : [ended];
  }

  #verified(target: string, { evidence, confidence }: Finding, verdict: Verdict): NewEvent {
    const { id, version } = this.#verifier!;
    const criteria = [...new Set(evidence.map(({ key }) => key))];
    const payload = {
      agentId: `${id}@${version}`,
      target,
      verdict,
      ...(criteria.length > 0 ? { criteria } : {}),
      ...(confidence === undefined ? {} : { confidence }),
    };
    return { type: 'agent.verified', nodeId: this.#context.node.id, payload };
  }

  /** Copies mapped variables of a worker that completed and was accepted. */
  #harvest({ workerId, child, result, isAccepted }: Ended): NewEvent[] {
    const { perWorkerOutputMappings, outputMapping = {} } = this.#config;
    const mapping = own(perWorkerOutputMappings, workerId) ?? outputMapping;
    const harvestedKeys = Object.keys(mapping);
    if (result.status !== 'completed' || !isAccepted || harvestedKeys.length === 0) return [];
    const taken = Object.entries(pickVariables(mapping, result.variables));
    const changes = taken.flatMap(([name, next]) => this.#set(name, next));
    return [...changes, this.#phase('output.harvested', workerId, child.runId, { harvestedKeys })];
  }

  #set(name: string, next: unknown): NewEvent[] {
    const previous = own(this.#variables, name);
    if (deepEqual(previous, next)) return [];
    const { id: nodeId } = this.#context.node;
    const before = previous === undefined ? {} : { previous };
    this.#variables[name] = next;
    return [{ type: 'variable.changed', nodeId, payload: { name, ...before, next, nodeId } }];
  }

  #phase(phase: Phase, workerId: string, childRunId: string, more: { harvestedKeys?: string[] } = {}): NewEvent {
    const { runId: parentRunId, node } = this.#context;
    const payload = { phase, workerId, parentRunId, childRunId, ...more };
    return { type: 'core.workflowChain.event', nodeId: node.id, payload };
  }

  #record([first, ...more]: readonly NewEvent[]): void {
    if (first) this.#context.emit(first, ...more);
  }
}

/** A result that did not pass is to be revised as long as that is allowed; then it has failed. */
function verdictOn({ satisfied }: Finding, mayRevise: boolean): Verdict {
  if (satisfied) return 'pass';
  return mayRevise ? 'revise' : 'fail';
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

import { type Static, Type } from 'typebox';
import type { ConfigProblem } from '../../../engine/definition/check.ts';
import { DISPATCH, SUPERVISOR } from '../../../engine/definition/orchestration.ts';
import type { InterruptRequest } from '../../../engine/people/interrupts.ts';
import { CONFIDENCE_FLOOR, type OrchestratorDecision } from '../../../protocol/ai/agents.ts';
import { Closed, MapOf, OneOf } from '../../../protocol/format/schema.ts';
import type { Verifier } from '../../../protocol/learning/verifiers.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { type NodeContext, NodeFailure, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { CHILD_FAILURE_MODES, JOIN_MODES, JoinPolicy } from './join.ts';
import {
  rejectedDecision,
  type Supervision,
  type SupervisorKind,
  supervisorId,
  type WorkerReport,
} from './supervisor.ts';
import { FAN_OUT_MAX, Workers } from './workers.ts';

const Optional = Type.Optional;
const FAN_OUT_POLICIES = ['sequential', 'reject', 'parallel'] as const;
/** Kinds of verifier that judge without a further run or a model. */
const LOCAL_KINDS: ReadonlySet<string> = new Set(['criteria', 'schema', 'checklist']);
const Mapping = MapOf(Type.String());
/** The most decisions of one supervisor, unless the node or the run sets a lower limit. */
export const TURNS_MAX = 100;

const DispatchConfig = Closed({
  askUserRouting: Optional(OneOf(['conversation', 'clarification', 'auto'], { default: 'auto' })),
  workerDispatchModel: Optional(OneOf(['child-run'])),
  fanOutPolicy: Optional(OneOf(FAN_OUT_POLICIES, { default: 'sequential' })),
  joinPolicy: Optional(JoinPolicy),
  maxConcurrency: Optional(
    Type.Integer({ minimum: 1, description: `Workers that run at the same time; ${FAN_OUT_MAX} at most` }),
  ),
  revisions: Optional(
    Type.Integer({
      minimum: 1,
      maximum: TURNS_MAX,
      description: 'How often a worker is sent again when the verifier has not let its result pass; each is a turn',
    }),
  ),
  iterationCap: Optional(Type.Integer({ minimum: 1, maximum: TURNS_MAX, default: TURNS_MAX })),
  inputMapping: Optional(Mapping),
  perWorkerInputMappings: Optional(MapOf(Mapping)),
  outputMapping: Optional(Mapping),
  perWorkerOutputMappings: Optional(MapOf(Mapping)),
});
type DispatchConfig = Static<typeof DispatchConfig>;
type ConfidentDecision = Exclude<OrchestratorDecision, { readonly kind: 'ask-user' }>;

/** What a dispatch node may do with several workers. */
export const FAN_OUT = {
  policies: FAN_OUT_POLICIES,
  joins: JOIN_MODES,
  failures: CHILD_FAILURE_MODES,
  max: FAN_OUT_MAX,
};

function dispatchProblems({
  askUserRouting,
  fanOutPolicy,
  joinPolicy,
  maxConcurrency,
  revisions,
}: DispatchConfig): ConfigProblem[] {
  const isParallel = fanOutPolicy === 'parallel';
  const needsParallel = 'It applies only with the fanOutPolicy parallel.';
  return [
    ...(askUserRouting === 'conversation'
      ? [{ path: '.askUserRouting', message: 'This host asks people by clarification. Use clarification or auto.' }]
      : []),
    ...(joinPolicy && !isParallel ? [{ path: '.joinPolicy', message: needsParallel }] : []),
    ...(maxConcurrency && !isParallel ? [{ path: '.maxConcurrency', message: needsParallel }] : []),
    ...(revisions && isParallel
      ? [{ path: '.revisions', message: 'It applies only where workers run one after the other.' }]
      : []),
    ...(joinPolicy?.mode === 'quorum' && joinPolicy.quorum === undefined
      ? [{ path: '.joinPolicy.quorum', message: 'The mode quorum needs it.' }]
      : []),
  ];
}

/** The variables that a dispatch takes over from its workers. */
function takenOver({ outputMapping = {}, perWorkerOutputMappings = {} }: DispatchConfig): string[] {
  return [outputMapping, ...Object.values(perWorkerOutputMappings)].flatMap((mapping) => Object.keys(mapping));
}

/** The node types of a supervised run: the supervisor that decides, and the dispatch node that acts on it. */
export function orchestrationNodes(supervisor: SupervisorKind): readonly NodeType[] {
  return [
    {
      typeId: SUPERVISOR,
      description: 'Asks an agent what to do next.',
      outputs: () => ['decision'],
      role: 'side-effect',
      config: supervisor.config,
      check: supervisor.check,
      run: (context) => takeFirstTurn(context, supervisor),
    },
    {
      typeId: DISPATCH,
      description: 'Does what a supervisor decided.',
      outputs: () => ['childRunId', 'childStatus', 'joinOutcome', 'children'],
      writes: ({ config }) => takenOver(config as DispatchConfig),
      role: 'side-effect',
      fansOut: true,
      config: DispatchConfig,
      check: (config) => dispatchProblems(config as DispatchConfig),
      run: (context) => new Dispatch(context, supervisor).run(),
    },
  ];
}

async function takeFirstTurn(context: NodeContext, { decide }: SupervisorKind): Promise<Outcome> {
  const { node: supervisor } = context;
  const supervision = await decide(context, { supervisor, number: 0, reports: [] });
  if ('outcome' in supervision) return supervision.outcome;
  const { decision } = supervision;
  context.emitStep(decided(supervisor, decision, 0));
  return { done: { outputs: { decision } } };
}

function decided(supervisor: WorkflowNode, decision: OrchestratorDecision, turn: number) {
  const payload = { agentId: supervisorId(supervisor), decision, iteration: turn + 1 };
  return { type: 'runOrchestrator.decided', nodeId: supervisor.id, payload } as const;
}

/**
 * Acts on each decision of the supervisor and asks for the next one until it decides to terminate. After a child run
 * ends the node runs again from the start: recorded decisions are taken from the log, and the children belong to the
 * workers in the order in which they were started.
 */
class Dispatch {
  readonly #context: NodeContext;
  readonly #config: DispatchConfig;
  readonly #decide: SupervisorKind['decide'];
  readonly #supervisor: WorkflowNode;
  #questions = 0;

  constructor(context: NodeContext, { decide }: SupervisorKind) {
    this.#context = context;
    this.#decide = decide;
    this.#config = context.config as DispatchConfig;
    this.#supervisor = supervisorOf(context);
  }

  async run(): Promise<Outcome> {
    const workers = new Workers(this.#context, await this.#verifier(), this.#turnsMax);
    for (let turn = 0; turn + workers.revisions < this.#turnsMax; turn++) {
      const supervision = await this.#decision(turn, workers.reports);
      if ('outcome' in supervision) return supervision.outcome;
      const { decision } = supervision;
      const escalated = this.#escalate(decision, turn);
      if (escalated) return escalated;
      if (decision.kind === 'terminate') return end(workers);
      const waiting =
        decision.kind === 'ask-user' ? this.#ask(decision.prompt) : await workers.send(turn, decision.nextWorkerIds);
      if (waiting) return waiting;
    }
    return this.#stop();
  }

  /** The verifier that the supervisor names for the results of its workers. */
  async #verifier(): Promise<Verifier | undefined> {
    const { verifier: verifierRef } = this.#supervisor.config;
    if (typeof verifierRef !== 'string') return undefined;
    const { verifier } = await this.#context.effects.verifiers({ verifierRef });
    if (!verifier) throw failure('verifier_not_found', `There is no verifier ${JSON.stringify(verifierRef)}.`);
    if (LOCAL_KINDS.has(verifier.kind)) return verifier;
    throw failure('validation_error', 'The verifier of a supervisor has criteria, a schema or a checklist.');
  }

  /** A decision below the confidence floor is not carried out before a person has accepted it. */
  #escalate(decision: OrchestratorDecision, turn: number): Outcome | undefined {
    if (decision.kind === 'ask-user' || (decision.confidence ?? 1) >= CONFIDENCE_FLOOR) return undefined;
    const { runId: parentRunId, node, answer, answerCount, emitStep } = this.#context;
    const confidence = decision.confidence!;
    const workerId = decision.kind === 'next-worker' ? { workerId: decision.nextWorkerIds[0]! } : {};
    const payload = { confidence, floor: CONFIDENCE_FLOOR, escalationKind: 'escalate' as const, parentRunId };
    emitStep({
      type: 'core.workflowChain.confidence-escalated',
      nodeId: node.id,
      payload: { ...payload, ...workerId, originalDecision: decision },
    });
    if (this.#questions++ >= answerCount) return { interrupt: confirmation(decision, turn) };
    // An answer to an earlier question was accepted, or the node would have failed then.
    const isLast = this.#questions === answerCount;
    if (isLast && (answer?.value as { action?: string } | undefined)?.action !== 'accept') throw rejectedDecision();
    return undefined;
  }

  get #turnsMax(): number {
    return Math.min(this.#config.iterationCap ?? TURNS_MAX, this.#context.configurable.maxLoopIterations ?? TURNS_MAX);
  }

  /**
   * The supervisor is asked even when the log has the decision: effects are numbered in the order of the calls, so no
   * call may be left out. The recorded decision wins.
   */
  async #decision(turn: number, reports: readonly WorkerReport[]): Promise<Supervision> {
    const known = this.#context.decisions[turn];
    if (turn === 0 && known) return { decision: known };
    if (turn === 0) throw failure('no_pending_decision', 'The log has no decision of a supervisor.');
    const supervision = await this.#decide(this.#context, { supervisor: this.#supervisor, number: turn, reports });
    if (known) return { decision: known };
    if ('decision' in supervision) this.#context.emit(decided(this.#supervisor, supervision.decision, turn));
    return supervision;
  }

  /** Interrupts with the question; undefined once the person has answered it. */
  #ask(prompt: string): Outcome | undefined {
    if (this.#questions++ < this.#context.answerCount) return undefined;
    return { interrupt: { kind: 'clarification', data: { questions: [{ id: 'answer', question: prompt }] } } };
  }

  #stop(): Outcome {
    const { node, emit } = this.#context;
    const limit = this.#turnsMax;
    const payload = { kind: 'loop-iterations' as const, limit, observed: limit + 1, nodeId: node.id };
    emit({ type: 'cap.breached', nodeId: node.id, payload });
    throw failure('loop_limit_exceeded', `The supervisor did not terminate within ${limit} turns.`);
  }
}

/** The end of a supervised run. What a verifier rejected last cannot pass for a success. */
function end(workers: Workers): Outcome {
  const { rejected, outputs } = workers;
  if (rejected.length === 0) return { done: { outputs } };
  throw failure('verification_failed', `The verifier rejected the last result of ${rejected.join(', ')}.`);
}

function confirmation({ kind, confidence }: ConfidentDecision, turn: number): InterruptRequest {
  const data = {
    artifactId: `decision-${turn + 1}`,
    artifactType: 'orchestrator-decision',
    title: `Carry out the decision "${kind}" of confidence ${confidence}?`,
    actions: ['accept', 'reject'],
  };
  return { kind: 'approval', data };
}

function supervisorOf({ workflow: { nodes, edges }, node }: NodeContext): WorkflowNode {
  const sources = edges.filter(({ targetNodeId }) => targetNodeId === node.id).map(({ sourceNodeId }) => sourceNodeId);
  const supervisor = nodes.find(({ id, typeId }) => typeId === SUPERVISOR && sources.includes(id));
  if (supervisor) return supervisor;
  throw failure('no_pending_decision', 'No edge leads from a supervisor to this node.');
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

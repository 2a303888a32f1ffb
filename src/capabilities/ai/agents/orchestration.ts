import { type Static, Type } from 'typebox';
import { DISPATCH, SUPERVISOR } from '../../../engine/definition/orchestration.ts';
import { isOver } from '../../../engine/run/run.ts';
import type { OrchestratorDecision } from '../../../protocol/ai/agents.ts';
import { deepEqual, type JsonObject, own } from '../../../protocol/format/json.ts';
import { Closed, MapOf, OneOf } from '../../../protocol/format/schema.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { type NodeContext, NodeFailure, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { pickVariables } from '../../running/nodes/door.ts';
import { type SupervisorKind, supervisorId, type WorkerReport } from './supervisor.ts';

const Optional = Type.Optional;
const Mapping = MapOf(Type.String());
/** The most decisions of one supervisor, unless the node or the run sets a lower limit. */
export const TURNS_MAX = 100;

const DispatchConfig = Closed({
  askUserRouting: Optional(OneOf(['conversation', 'clarification', 'auto'], { default: 'auto' })),
  workerDispatchModel: Optional(OneOf(['child-run'])),
  fanOutPolicy: Optional(OneOf(['sequential', 'reject'], { default: 'sequential' })),
  iterationCap: Optional(Type.Integer({ minimum: 1, maximum: TURNS_MAX, default: TURNS_MAX })),
  inputMapping: Optional(Mapping),
  perWorkerInputMappings: Optional(MapOf(Mapping)),
  outputMapping: Optional(Mapping),
  perWorkerOutputMappings: Optional(MapOf(Mapping)),
});
type DispatchConfig = Static<typeof DispatchConfig>;

/** The node types of a supervised run: the supervisor that decides, and the dispatch node that acts on it. */
export function orchestrationNodes(supervisor: SupervisorKind): readonly NodeType[] {
  return [
    {
      typeId: SUPERVISOR,
      role: 'side-effect',
      config: supervisor.config,
      check: supervisor.check,
      run: (context) => takeFirstTurn(context, supervisor),
    },
    {
      typeId: DISPATCH,
      role: 'side-effect',
      fansOut: true,
      config: DispatchConfig,
      check: ({ askUserRouting }) =>
        askUserRouting === 'conversation'
          ? [{ path: '.askUserRouting', message: 'This host asks people by clarification. Use clarification or auto.' }]
          : [],
      run: (context) => new Dispatch(context, supervisor).run(),
    },
  ];
}

async function takeFirstTurn(context: NodeContext, { decide }: SupervisorKind): Promise<Outcome> {
  const { node: supervisor } = context;
  const supervision = await decide(context, { supervisor, number: 0, reports: [] });
  if ('outcome' in supervision) return supervision.outcome;
  const { decision } = supervision;
  context.emitStep(decided(supervisor, decision));
  return { done: { outputs: { decision } } };
}

function decided(supervisor: WorkflowNode, decision: OrchestratorDecision) {
  const payload = { agentId: supervisorId(supervisor), decision };
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
  readonly #variables: JsonObject;
  readonly #reports: WorkerReport[] = [];
  #last: JsonObject = {};
  #questions = 0;

  constructor(context: NodeContext, { decide }: SupervisorKind) {
    this.#context = context;
    this.#decide = decide;
    this.#config = context.config as DispatchConfig;
    this.#supervisor = supervisorOf(context);
    this.#variables = { ...context.variables };
  }

  async run(): Promise<Outcome> {
    for (let turn = 0; turn < this.#turnsMax; turn++) {
      const supervision = await this.#decision(turn);
      if ('outcome' in supervision) return supervision.outcome;
      const { decision } = supervision;
      if (decision.kind === 'terminate') return { done: { outputs: this.#last } };
      const waiting =
        decision.kind === 'ask-user' ? this.#ask(decision.prompt) : await this.#send(decision.nextWorkerIds);
      if (waiting) return waiting;
    }
    return this.#stop();
  }

  get #turnsMax(): number {
    return Math.min(this.#config.iterationCap ?? TURNS_MAX, this.#context.configurable.maxLoopIterations ?? TURNS_MAX);
  }

  /**
   * The supervisor is asked even when the log has the decision: effects are numbered in the order of the calls, so no
   * call may be left out. The recorded decision wins.
   */
  async #decision(turn: number): Promise<{ decision: OrchestratorDecision } | { outcome: Outcome }> {
    const known = this.#context.decisions[turn];
    if (turn === 0 && known) return { decision: known };
    if (turn === 0) throw failure('no_pending_decision', 'The log has no decision of a supervisor.');
    const supervision = await this.#decide(this.#context, {
      supervisor: this.#supervisor,
      number: turn,
      reports: this.#reports,
    });
    if (known) return { decision: known };
    if ('decision' in supervision) this.#context.emit(decided(this.#supervisor, supervision.decision));
    return supervision;
  }

  /** Interrupts with the question; undefined once the person has answered it. */
  #ask(prompt: string): Outcome | undefined {
    if (this.#questions++ < this.#context.answerCount) return undefined;
    return { interrupt: { kind: 'clarification', data: { questions: [{ id: 'answer', question: prompt }] } } };
  }

  /** Runs the workers one after the other; undefined once all of them have ended. */
  async #send(workers: readonly string[]): Promise<Outcome | undefined> {
    if (workers.length > 1 && this.#config.fanOutPolicy === 'reject') {
      throw failure('fan_out_unsupported', 'The fanOutPolicy of this node allows one worker at a time.');
    }
    for (const workflowId of workers) {
      const child = this.#context.children[this.#reports.length];
      if (!child)
        return { children: [{ workflowId, variables: pickVariables(this.#inputsOf(workflowId), this.#variables) }] };
      if (!isOver(child)) return { children: [] };
      await this.#collect(workflowId, child.runId);
    }
    return undefined;
  }

  #inputsOf(workflowId: string): Record<string, string> {
    const { perWorkerInputMappings, inputMapping = {} } = this.#config;
    return own(perWorkerInputMappings, workflowId) ?? inputMapping;
  }

  /** Copies mapped variables of an ended worker, so that the next worker can get them. */
  async #collect(workflowId: string, runId: string): Promise<void> {
    const { status, variables } = await this.#context.childResult(runId);
    const { perWorkerOutputMappings, outputMapping = {} } = this.#config;
    this.#reports.push({ workflowId, status });
    this.#last = { childRunId: runId, childStatus: status };
    if (status !== 'completed') return;
    const mapping = own(perWorkerOutputMappings, workflowId) ?? outputMapping;
    for (const [name, next] of Object.entries(pickVariables(mapping, variables))) this.#set(name, next);
  }

  #set(name: string, next: unknown): void {
    const previous = own(this.#variables, name);
    if (deepEqual(previous, next)) return;
    const { node, emit } = this.#context;
    const before = previous === undefined ? {} : { previous };
    emit({ type: 'variable.changed', nodeId: node.id, payload: { name, ...before, next, nodeId: node.id } });
    this.#variables[name] = next;
  }

  #stop(): Outcome {
    const { node, emit } = this.#context;
    const limit = this.#turnsMax;
    const payload = { kind: 'loop-iterations' as const, limit, observed: limit + 1, nodeId: node.id };
    emit({ type: 'cap.breached', nodeId: node.id, payload });
    throw failure('loop_limit_exceeded', `The supervisor did not terminate within ${limit} turns.`);
  }
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

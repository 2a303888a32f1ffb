import { type Static, Type } from 'typebox';
import type { ConfigProblem } from '../../../engine/definition/check.ts';
import { DISPATCH, SUPERVISOR } from '../../../engine/definition/orchestration.ts';
import { isOver } from '../../../engine/run/run.ts';
import type { OrchestratorDecision } from '../../../protocol/ai/agents.ts';
import { deepEqual, type JsonObject, own } from '../../../protocol/format/json.ts';
import { Closed, MapOf, OneOf } from '../../../protocol/format/schema.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { type NodeContext, NodeFailure, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { pickVariables } from '../../running/nodes/door.ts';
import { SupervisorConfig, supervise, supervisorId, type WorkerReport } from './supervise.ts';

const Optional = Type.Optional;
const Mapping = MapOf(Type.String());
/** Turns that a supervisor may take, where nobody says less. */
const TURNS_MAX = 100;

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

/** The nodes of a run that a supervisor leads. Plans that stand in for a model are for suites alone. */
export function orchestration({ conformance }: { readonly conformance: boolean }): readonly NodeType[] {
  return [
    {
      typeId: SUPERVISOR,
      role: 'side-effect',
      config: SupervisorConfig,
      check: (config) => supervisorProblems(config as SupervisorConfig, conformance),
      run: takeFirstTurn,
    },
    {
      typeId: DISPATCH,
      role: 'side-effect',
      fansOut: true,
      config: DispatchConfig,
      check: ({ askUserRouting }) =>
        askUserRouting === 'conversation'
          ? [{ path: '.askUserRouting', message: 'This host asks people by clarification.' }]
          : [],
      run: (context) => new Dispatch(context).run(),
    },
  ];
}

function supervisorProblems({ workers, ...config }: SupervisorConfig, conformance: boolean): ConfigProblem[] {
  const mock = Object.keys(config).find((key) => key.startsWith('mock'));
  if (conformance) return [];
  if (mock)
    return [{ path: `.${mock}`, message: 'Plans stand in for supervisors under the conformance switch alone.' }];
  return workers ? [] : [{ path: '.workers', message: 'A supervisor needs workflows to choose from.' }];
}

async function takeFirstTurn(context: NodeContext): Promise<Outcome> {
  const { node: supervisor } = context;
  const supervision = await supervise(context, { supervisor, number: 0, reports: [] });
  if ('outcome' in supervision) return supervision.outcome;
  const { decision } = supervision;
  context.tell(decided(supervisor, decision));
  return { done: { outputs: { decision } } };
}

function decided(supervisor: WorkflowNode, decision: OrchestratorDecision) {
  const payload = { agentId: supervisorId(supervisor), decision };
  return { type: 'runOrchestrator.decided', nodeId: supervisor.id, payload } as const;
}

/**
 * Acts on what the supervisor decides, and asks it again, until it says that this is the end. Called again, it goes
 * through the same turns: the log has the decisions, and which child is for which worker follows from their order.
 */
class Dispatch {
  readonly #context: NodeContext;
  readonly #config: DispatchConfig;
  readonly #supervisor: WorkflowNode;
  readonly #variables: JsonObject;
  readonly #reports: WorkerReport[] = [];
  #last: JsonObject = {};
  #questions = 0;

  constructor(context: NodeContext) {
    this.#context = context;
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

  /** The supervisor is asked in any case: what it is asked is counted, turn by turn. What the log has holds. */
  async #decision(turn: number): Promise<{ decision: OrchestratorDecision } | { outcome: Outcome }> {
    const known = this.#context.decisions[turn];
    if (turn === 0 && known) return { decision: known };
    if (turn === 0) throw failure('no_pending_decision', 'No supervisor has decided anything.');
    const supervision = await supervise(this.#context, {
      supervisor: this.#supervisor,
      number: turn,
      reports: this.#reports,
    });
    if (known) return { decision: known };
    if ('decision' in supervision) this.#context.emit(decided(this.#supervisor, supervision.decision));
    return supervision;
  }

  /** Nothing once the person has answered. */
  #ask(prompt: string): Outcome | undefined {
    if (this.#questions++ < this.#context.answers) return undefined;
    return { interrupt: { kind: 'clarification', data: { questions: [{ id: 'answer', question: prompt }] } } };
  }

  /** One worker after the other. Nothing once all of them are back. */
  async #send(workers: readonly string[]): Promise<Outcome | undefined> {
    if (workers.length > 1 && this.#config.fanOutPolicy === 'reject') {
      throw failure('fan_out_unsupported', 'The supervisor may send one worker at a time here.');
    }
    for (const workflowId of workers) {
      const child = this.#context.children[this.#reports.length];
      if (!child)
        return { children: [{ workflowId, variables: pickVariables(this.#inputsOf(workflowId), this.#variables) }] };
      if (!isOver(child)) return { children: [] };
      await this.#harvest(workflowId, child.runId);
    }
    return undefined;
  }

  #inputsOf(workflowId: string): Record<string, string> {
    const { perWorkerInputMappings, inputMapping = {} } = this.#config;
    return own(perWorkerInputMappings, workflowId) ?? inputMapping;
  }

  /** What a worker has found out, the next one may be told. */
  async #harvest(workflowId: string, runId: string): Promise<void> {
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
    throw failure('loop_limit_exceeded', `The supervisor came to no end in ${limit} turns.`);
  }
}

function supervisorOf({ workflow: { nodes, edges }, node }: NodeContext): WorkflowNode {
  const sources = edges.filter(({ targetNodeId }) => targetNodeId === node.id).map(({ sourceNodeId }) => sourceNodeId);
  const supervisor = nodes.find(({ id, typeId }) => typeId === SUPERVISOR && sources.includes(id));
  if (supervisor) return supervisor;
  throw failure('no_pending_decision', 'No supervisor leads to this node.');
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}

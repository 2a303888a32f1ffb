import { type Static, Type } from 'typebox';
import { asSegment } from '../../../engine/models/prompt-text.ts';
import { CONFIDENCE_THRESHOLD, OrchestratorDecision } from '../../../protocol/ai/agents.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { NonEmpty } from '../../../protocol/format/schema.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { type NodeContext, NodeFailure, type Outcome } from '../../../runtime/node-type.ts';
import { composePrompts, messagesOf } from '../../../runtime/prompts.ts';
import { Invocation } from './invocation.ts';
import { briefFor, closing, tellStart } from './run-agent.ts';

const Optional = Type.Optional;
const STEPS_MAX = 3;

export const SupervisorConfig = Type.Object({
  workers: Optional(
    Type.Array(NonEmpty, { minItems: 1, maxItems: 100, uniqueItems: true, description: 'Workflows that it may send' }),
  ),
  systemPrompt: Optional(Type.String()),
  provider: Optional(NonEmpty),
  model: Optional(NonEmpty),
  mockDispatchPlan: Optional(Type.Array(OrchestratorDecision)),
  mockDecisions: Optional(Type.Array(OrchestratorDecision)),
  mockConfidence: Optional(Type.Number({ minimum: 0, maximum: 1 })),
  mockPendingDecision: Optional(OrchestratorDecision),
});
export type SupervisorConfig = Static<typeof SupervisorConfig>;

/** How a worker that was sent came back. */
export interface WorkerReport {
  readonly workflowId: string;
  readonly status: string;
}

export interface Turn {
  readonly supervisor: WorkflowNode;
  /** From 0. */
  readonly number: number;
  readonly reports: readonly WorkerReport[];
}

/** What to do next, or what the node that asks comes to because nobody knows yet. */
export type Supervision = { readonly decision: OrchestratorDecision } | { readonly outcome: Outcome };

/** Who the supervisor is for the whole run. */
export function supervisorId({ id, agent, config }: WorkflowNode): string {
  return agent?.agentId ?? (config.agentId as string | undefined) ?? `host:supervisor:${id}`.slice(0, 256);
}

/** Asks the supervisor, on behalf of whichever node it is whose turn it is. */
export function supervise(context: NodeContext, turn: Turn): Supervision | Promise<Supervision> {
  const config = turn.supervisor.config as SupervisorConfig;
  const planned = plannedDecision(config, turn.number);
  return planned ? ratify(context, turn.supervisor, planned) : askSupervisor(context, turn, config.workers!);
}

interface Planned {
  readonly decision: OrchestratorDecision;
  readonly confidence: number | undefined;
}

/** What a plan says, for suites; without workers to choose from there is one, too. */
function plannedDecision(config: SupervisorConfig, turn: number): Planned | undefined {
  const { workers, mockDispatchPlan, mockDecisions, mockPendingDecision, mockConfidence } = config;
  const pending = mockPendingDecision ? [mockPendingDecision] : undefined;
  const plan = mockDispatchPlan ?? mockDecisions ?? pending ?? (workers ? undefined : DEFAULT_PLAN);
  if (!plan) return undefined;
  const decision = plan[turn] ?? { kind: 'terminate' };
  const own = 'confidence' in decision ? decision.confidence : undefined;
  return { decision, confidence: turn === 0 ? (mockConfidence ?? own) : own };
}

const DEFAULT_PLAN: readonly OrchestratorDecision[] = [{ kind: 'next-worker', nextWorkerIds: ['conformance-noop'] }];

function ratify(context: NodeContext, supervisor: WorkflowNode, { decision, confidence }: Planned): Supervision {
  const threshold = context.configurable.escalationThreshold ?? CONFIDENCE_THRESHOLD;
  if (confidence === undefined || confidence >= threshold) return { decision };
  const ruling = context.answer?.value as { action?: string; decision?: OrchestratorDecision } | undefined;
  if (ruling?.action === 'reject') throw rejected();
  if (ruling) return { decision: ruling.decision ?? decision };
  const data = { agentId: supervisorId(supervisor), threshold, observed: confidence, decision };
  return { outcome: { interrupt: { kind: 'low-confidence', data } } };
}

async function askSupervisor(context: NodeContext, turn: Turn, workers: readonly string[]): Promise<Supervision> {
  const { supervisor } = turn;
  // The supervisor speaks from where it is asked: the events of its turn are that node's.
  const node = { ...supervisor, id: context.node.id };
  const seat: NodeContext = { ...context, node, config: { ...supervisor.config, tools: [] } };
  const brief = await briefFor(seat);
  const id = `${context.runId}:${context.node.id}:${context.visit}:${turn.number}`;
  const agentId = supervisorId(supervisor);
  tellStart(seat, { id, agentId, brief });
  const rule = { schema: decisionSchema(workers) };
  const prompts = messagesOf(seat, await composePrompts(seat, brief.agent ?? undefined));
  const messages = [
    ...prompts,
    { role: 'system' as const, content: closing(rule) },
    { role: 'user' as const, content: situation(context, turn, workers) },
  ];
  const outcome = await new Invocation(seat, { id, brief, agentId, messages, rule, stepsMax: STEPS_MAX }).run();
  if (!('done' in outcome)) return { outcome };
  if (outcome.done.outputs?.action === 'reject') throw rejected();
  return { decision: outcome.done.outputs!.result as OrchestratorDecision };
}

function decisionSchema(workers: readonly string[]): JsonObject {
  const kind = (name: string, properties: JsonObject, required: readonly string[]): JsonObject => ({
    type: 'object',
    properties: { kind: { const: name }, ...properties },
    required: ['kind', ...required],
    additionalProperties: false,
  });
  const nextWorkerIds = { type: 'array', items: { enum: [...workers] }, minItems: 1, maxItems: 100 };
  const text = { type: 'string', minLength: 1 };
  return {
    oneOf: [
      kind('next-worker', { nextWorkerIds }, ['nextWorkerIds']),
      kind('ask-user', { prompt: text }, ['prompt']),
      kind('terminate', { reason: text }, []),
    ],
  };
}

function situation({ variables, answer }: NodeContext, { number, reports }: Turn, workers: readonly string[]): string {
  const facts = { turn: number + 1, workers, sentSoFar: reports };
  const told = answer === undefined ? [] : ['', 'What a person answered last:', asSegment(answer.value, 'untrusted')];
  return [JSON.stringify(facts), '', 'What is known:', asSegment(variables, 'untrusted'), ...told].join('\n');
}

function rejected(): NodeFailure {
  const message = 'A person rejected what the supervisor decided.';
  return new NodeFailure({ code: 'approval_rejected', message, retryable: false });
}

import { type Static, type TSchema, Type } from 'typebox';
import type { ConfigProblem } from '../../../engine/definition/check.ts';
import { asSegment } from '../../../engine/models/prompt-text.ts';
import type { OrchestratorDecision } from '../../../protocol/ai/agents.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { NonEmpty } from '../../../protocol/format/schema.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { type NodeContext, NodeFailure, type Outcome } from '../../../runtime/node-type.ts';
import { composePrompts, PROMPT_KEYS, promptMessages, promptRefProblems } from '../../../runtime/prompts.ts';
import { Invocation } from './invocation.ts';
import { answerFormat, recordStart, resolveAgent } from './run-agent.ts';

const Optional = Type.Optional;
const STEPS_MAX = 3;

/** The config of a supervisor that asks a model. */
export const SupervisorConfig = Type.Object({
  ...PROMPT_KEYS,
  workers: Optional(
    Type.Array(NonEmpty, { minItems: 1, maxItems: 100, uniqueItems: true, description: 'Workflows that it may send' }),
  ),
  verifier: Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'Judges each result of a worker: criteria, schema or checklist; nothing is taken over without a pass',
    }),
  ),
  provider: Optional(NonEmpty),
  model: Optional(NonEmpty),
});
type SupervisorConfig = Static<typeof SupervisorConfig>;

/** How a worker run that the supervisor started has ended. */
export interface WorkerReport {
  readonly workflowId: string;
  readonly status: string;
}

/** One decision that the supervisor is asked for. */
interface Turn {
  readonly supervisor: WorkflowNode;
  /** Counted from 0. */
  readonly number: number;
  readonly reports: readonly WorkerReport[];
}

/** The supervisor's decision, or the outcome of the asking node while a person has to confirm it. */
export type Supervision = { readonly decision: OrchestratorDecision } | { readonly outcome: Outcome };

/** Who decides in a supervised run: a model, or a plan under the conformance switch. */
export interface SupervisorKind {
  readonly config: TSchema;
  readonly check: (config: JsonObject) => ConfigProblem[];
  /** Called by whichever node has the turn: the supervisor first, the dispatch node afterwards. */
  readonly decide: (context: NodeContext, turn: Turn) => Supervision | Promise<Supervision>;
}

/** A supervisor that asks a model which of its workers to run next. */
export const modelSupervisor: SupervisorKind = {
  config: SupervisorConfig,
  check: (config) => [
    ...(config.workers ? [] : [{ path: '.workers', message: 'A supervisor needs workflows to choose from.' }]),
    ...promptRefProblems(config),
  ],
  decide: (context, turn) => {
    const { workers = [] } = turn.supervisor.config as SupervisorConfig;
    return askSupervisor(context, turn, workers);
  },
};

/** The agent id of the supervisor, the same for the whole run. */
export function supervisorId({ id, agent, config }: WorkflowNode): string {
  return agent?.agentId ?? (config.agentId as string | undefined) ?? `host:supervisor:${id}`.slice(0, 256);
}

/** A person rejected a decision that the supervisor was not confident about. */
export function rejectedDecision(): NodeFailure {
  const message = 'A person rejected the decision of the supervisor.';
  return new NodeFailure({ code: 'approval_rejected', message, retryable: false });
}

async function askSupervisor(context: NodeContext, turn: Turn, workers: readonly string[]): Promise<Supervision> {
  const { supervisor } = turn;
  // The events of a turn carry the id of the node that asks, which after the first turn is the dispatch node.
  const node = { ...supervisor, id: context.node.id };
  const asSupervisor: NodeContext = {
    ...context,
    node,
    config: { ...supervisor.config, tools: [] },
  };
  const resolved = await resolveAgent(asSupervisor);
  const id = `${context.runId}:${context.node.id}:${context.visit}:${turn.number}`;
  const agentId = supervisorId(supervisor);
  recordStart(asSupervisor, { id, agentId, resolved });
  const rule = { schema: decisionSchema(workers) };
  const prompts = promptMessages(asSupervisor, await composePrompts(asSupervisor, resolved.agent ?? undefined));
  const messages = [
    ...prompts,
    { role: 'system' as const, content: answerFormat(rule) },
    { role: 'user' as const, content: situation(context, turn, workers) },
  ];
  const outcome = await new Invocation(asSupervisor, {
    id,
    resolved,
    agentId,
    messages,
    rule,
    stepsMax: STEPS_MAX,
  }).run();
  if (!('done' in outcome)) return { outcome };
  if (outcome.done.outputs?.action === 'reject') throw rejectedDecision();
  return { decision: withConfidence(outcome.done.outputs!) };
}

/** The decision with its confidence, unless a person has confirmed it. */
function withConfidence({ result, confidence, action }: JsonObject): OrchestratorDecision {
  const decision = result as OrchestratorDecision;
  if (decision.kind === 'ask-user' || typeof confidence !== 'number' || action !== undefined) return decision;
  return { ...decision, confidence };
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
  const criterion = { key: text, met: { type: 'boolean' } };
  const successCriteria = {
    type: 'array',
    items: { type: 'object', properties: criterion, required: ['key', 'met'], additionalProperties: false },
  };
  return {
    oneOf: [
      kind('next-worker', { nextWorkerIds }, ['nextWorkerIds']),
      kind('ask-user', { prompt: text }, ['prompt']),
      kind('terminate', { reason: text, successCriteria }, []),
    ],
  };
}

function situation({ variables, answer }: NodeContext, { number, reports }: Turn, workers: readonly string[]): string {
  const facts = { turn: number + 1, workers, sentSoFar: reports };
  const told = answer === undefined ? [] : ['', 'What a person answered last:', asSegment(answer.value, 'untrusted')];
  return [JSON.stringify(facts), '', 'What is known:', asSegment(variables, 'untrusted'), ...told].join('\n');
}

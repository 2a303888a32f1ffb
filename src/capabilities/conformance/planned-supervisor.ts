import { type Static, Type } from 'typebox';
import { CONFIDENCE_THRESHOLD, OrchestratorDecision } from '../../protocol/ai/agents.ts';
import type { WorkflowNode } from '../../protocol/running/workflows.ts';
import type { NodeContext } from '../../runtime/node-type.ts';
import { promptRefProblems } from '../../runtime/prompts.ts';
import {
  modelSupervisor,
  rejectedDecision,
  type Supervision,
  SupervisorConfig,
  type SupervisorKind,
  supervisorId,
} from '../ai/agents/door.ts';

const Optional = Type.Optional;

const Config = Type.Object({
  ...SupervisorConfig.properties,
  mockDispatchPlan: Optional(Type.Array(OrchestratorDecision)),
  mockDecisions: Optional(Type.Array(OrchestratorDecision)),
  mockConfidence: Optional(Type.Number({ minimum: 0, maximum: 1 })),
  mockPendingDecision: Optional(OrchestratorDecision),
});
type Config = Static<typeof Config>;

/** A supervisor whose decisions may stand in its config; without a plan and with workers, it asks a model. */
export const plannedSupervisor: SupervisorKind = {
  config: Config,
  check: promptRefProblems,
  decide: (context, turn) => {
    const planned = plannedDecision(turn.supervisor.config as Config, turn.number);
    return planned ? ratify(context, turn.supervisor, planned) : modelSupervisor.decide(context, turn);
  },
};

interface Planned {
  readonly decision: OrchestratorDecision;
  readonly confidence: number | undefined;
}

const DEFAULT_PLAN: readonly OrchestratorDecision[] = [{ kind: 'next-worker', nextWorkerIds: ['conformance-noop'] }];

function plannedDecision(config: Config, turn: number): Planned | undefined {
  const { workers, mockDispatchPlan, mockDecisions, mockPendingDecision, mockConfidence } = config;
  const pending = mockPendingDecision ? [mockPendingDecision] : undefined;
  const plan = mockDispatchPlan ?? mockDecisions ?? pending ?? (workers ? undefined : DEFAULT_PLAN);
  if (!plan) return undefined;
  const decision = plan[turn] ?? { kind: 'terminate' };
  // The confidence within a decision is for the dispatch node, which has a floor of its own.
  return { decision, confidence: turn === 0 ? mockConfidence : undefined };
}

/** Asks a person about a decision below the confidence threshold, as a supervisor with a model does. */
function ratify(context: NodeContext, supervisor: WorkflowNode, { decision, confidence }: Planned): Supervision {
  const threshold = context.configurable.escalationThreshold ?? CONFIDENCE_THRESHOLD;
  if (confidence === undefined || confidence >= threshold) return { decision };
  const ruling = context.answer?.value as { action?: string; decision?: OrchestratorDecision } | undefined;
  if (ruling?.action === 'reject') throw rejectedDecision();
  if (ruling) return { decision: ruling.decision ?? decision };
  const data = { agentId: supervisorId(supervisor), threshold, observed: confidence, decision };
  return { outcome: { interrupt: { kind: 'low-confidence', data } } };
}

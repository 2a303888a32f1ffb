import { type Static, Type } from 'typebox';
import { CONFIDENCE_THRESHOLD } from '../../../protocol/ai/agents.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import type { NodeContext, NodeType, Outcome } from '../../../runtime/node-type.ts';

const Optional = Type.Optional;
const AgentId = Type.String({ minLength: 3 });
const Confidence = Type.Number({ minimum: 0, maximum: 1 });

const Config = Closed({
  agentId: Optional(AgentId),
  mockReasoning: Optional(
    Type.Union([
      Type.Boolean(),
      Closed({
        summary: Type.String(),
        trace: Optional(Type.String()),
        tokenCount: Optional(Type.Integer({ minimum: 0 })),
        streamChunks: Optional(Type.Array(Type.String())),
      }),
    ]),
  ),
  mockToolCalls: Optional(
    Type.Array(
      Closed({
        toolId: NonEmpty,
        arguments: Optional(Type.Unknown()),
        result: Optional(Type.Unknown()),
        error: Optional(Type.Unknown()),
        durationMs: Optional(Type.Integer({ minimum: 0 })),
      }),
    ),
  ),
  mockHandoff: Optional(
    Closed({ toAgentId: AgentId, reason: Optional(Type.String()), context: Optional(Type.Unknown()) }),
  ),
  mockDecision: Optional(
    Closed({ decision: Type.Unknown(), confidence: Optional(Confidence), reasoning: Optional(Type.String()) }),
  ),
  mockConfidence: Optional(Confidence),
});
type Config = Static<typeof Config>;

/** Records the events of an agent from its config, without a model or tools. */
export const mockAgent: NodeType = {
  typeId: 'core.conformance.mock-agent',
  description: 'Records the events of an agent from its config.',
  role: 'pure',
  config: Config,
  async run(context): Promise<Outcome> {
    const config = context.config as Config;
    const agentId = config.agentId ?? context.node.agent?.agentId ?? `host:mock-agent:${context.node.id}`;
    for (const step of stepsOf(config, agentId, context)) context.emitStep({ ...step, nodeId: context.node.id });
    return outcomeOf(config, agentId, context);
  },
};

function stepsOf(config: Config, agentId: string, { node, configurable }: NodeContext): NewEvent[] {
  const { mockToolCalls = [], mockHandoff, mockDecision } = config;
  return [
    ...(configurable.reasoningVerbosity === 'off' ? [] : reasoningSteps(config, agentId)),
    ...mockToolCalls.flatMap((call, index) => toolSteps(call, { agentId, callId: `${node.id}:${index}` })),
    ...(mockHandoff
      ? [
          {
            type: 'agent.handoff',
            payload: {
              fromAgentId: agentId,
              toAgentId: mockHandoff.toAgentId,
              ...(mockHandoff.reason === undefined ? {} : { reason: mockHandoff.reason }),
            },
          } as const,
        ]
      : []),
    ...(mockDecision || config.mockConfidence !== undefined ? [decidedStep(config, agentId)] : []),
  ];
}

function reasoningSteps({ mockReasoning }: Config, agentId: string): NewEvent[] {
  if (!mockReasoning) return [];
  const { summary, streamChunks } =
    mockReasoning === true ? { summary: 'Thought about it.', streamChunks: undefined } : mockReasoning;
  const deltas = (streamChunks ?? []).map((delta, sequence): NewEvent => {
    return { type: 'agent.reasoning.delta', payload: { agentId, delta, sequence } };
  });
  const reasoning = streamChunks?.join('') ?? summary;
  return [...deltas, { type: 'agent.reasoned', payload: { agentId, reasoning } }];
}

type MockCall = NonNullable<Config['mockToolCalls']>[number];

function toolSteps(call: MockCall, { agentId, callId }: { agentId: string; callId: string }): NewEvent[] {
  const facts = { agentId, toolName: call.toolId, callId };
  const outcome =
    call.error === undefined ? { status: 'ok', outcome: call.result ?? null } : { status: 'error', error: call.error };
  const { durationMs = 0 } = call;
  return [
    {
      type: 'agent.toolCalled',
      payload: { ...facts, ...(call.arguments === undefined ? {} : { inputs: call.arguments }), transport: 'native' },
    },
    { type: 'agent.toolReturned', payload: { ...facts, ...(outcome as { status: 'ok' }), durationMs } },
  ];
}

function decidedStep(config: Config, agentId: string): NewEvent {
  const confidence = confidenceOf(config);
  return {
    type: 'agent.decided',
    payload: {
      agentId,
      decision: config.mockDecision?.decision ?? null,
      ...(confidence === undefined ? {} : { confidence }),
    },
  };
}

function confidenceOf({ mockDecision, mockConfidence }: Config): number | undefined {
  return mockDecision?.confidence ?? mockConfidence;
}

function outcomeOf(config: Config, agentId: string, { configurable, answer }: NodeContext): Outcome {
  const observed = confidenceOf(config);
  const threshold = configurable.escalationThreshold ?? CONFIDENCE_THRESHOLD;
  const decision = config.mockDecision?.decision;
  if (observed === undefined || observed >= threshold) {
    return { done: decision === undefined ? {} : { outputs: { decision } } };
  }
  // The person's answer is the decision.
  if (answer) return { done: { outputs: { decision: answer.value } } };
  const data = { agentId, threshold, observed, ...(decision === undefined ? {} : { decision }) };
  return { interrupt: { kind: 'low-confidence', data } };
}

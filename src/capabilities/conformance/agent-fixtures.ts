import type { JsonObject } from '../../protocol/format/json.ts';
import type { AgentRef, WorkflowDefinition, WorkflowNode, WorkflowVariable } from '../../protocol/running/workflows.ts';
import { line, node } from './fixtures.ts';

/** The workflows of agents that conformance suites start by name. */

const pinned = (id: string, typeId: string, agent: AgentRef, config: JsonObject = {}): WorkflowNode => ({
  ...node(id, typeId, config),
  agent,
});

const reasoning = (agentId: string): AgentRef => ({ agentId, modelClass: 'reasoning' });

/** A supervisor, and a dispatch that does what it says and asks it again. */
const led = (
  id: string,
  name: string,
  plan: JsonObject,
  {
    dispatch = {},
    variables = [],
    agent,
  }: { dispatch?: JsonObject; variables?: readonly WorkflowVariable[]; agent?: AgentRef } = {},
): WorkflowDefinition => {
  const supervisor = node('supervisor', 'core.orchestrator.supervisor', plan);
  const nodes = [agent ? { ...supervisor, agent } : supervisor, node('dispatch', 'core.dispatch', dispatch)];
  const workflow = line(id, name, nodes, { variables });
  const back = { id: 'dispatch-supervisor', sourceNodeId: 'dispatch', targetNodeId: 'supervisor' };
  return { ...workflow, edges: [...workflow.edges, back] };
};
const sends = (...nextWorkerIds: string[]): JsonObject => ({ kind: 'next-worker', nextWorkerIds });
const DONE = { kind: 'terminate', reason: 'goal-reached' };
const text = (name: string, defaultValue?: string): WorkflowVariable =>
  defaultValue === undefined ? { name, type: 'string' } : { name, type: 'string', defaultValue };

const INPUT_CHILD = 'conformance-dispatch-input-mapping-child';
const OUTPUT_CHILD = 'conformance-dispatch-output-mapping-child';
const [CHILD_A, CHILD_B] = ['a', 'b'].map((letter) => `conformance-dispatch-cross-worker-handoff-child-${letter}`) as [
  string,
  string,
];
const maps = { inputMapping: { childGreeting: 'parentName' } };

const LED_FIXTURES: readonly WorkflowDefinition[] = [
  led('conformance-dispatch-loop', 'Is led by a supervisor', {}),
  led(
    'conformance-orchestrator-dispatch',
    'Sends one worker',
    { mockDecisions: [sends('conformance-noop'), DONE] },
    {
      agent: reasoning('core.conformance.supervisor'),
    },
  ),
  led(
    'conformance-orchestrator-terminate',
    'Sends nobody',
    { mockDecisions: [DONE] },
    {
      agent: reasoning('core.conformance.terminate-supervisor'),
    },
  ),
  led(
    'conformance-orchestrator-low-confidence',
    'Is not sure whom to send',
    { mockConfidence: 0.5, mockPendingDecision: sends('conformance-noop') },
    { agent: reasoning('core.conformance.low-conf-supervisor') },
  ),
  led(
    'conformance-dispatch-input-mapping',
    'Tells a worker something',
    { mockDispatchPlan: [sends(INPUT_CHILD), DONE] },
    {
      dispatch: maps,
      variables: [text('parentName', 'Alice')],
    },
  ),
  led(
    'conformance-dispatch-input-mapping-no-default',
    'Has nothing to tell a worker',
    { mockDispatchPlan: [sends(INPUT_CHILD), DONE] },
    { dispatch: maps, variables: [text('parentName')] },
  ),
  line(INPUT_CHILD, 'Is told something', [node('noop', 'core.identity')]),
  led(
    'conformance-dispatch-output-mapping',
    'Learns from a worker',
    { mockDispatchPlan: [sends(OUTPUT_CHILD), DONE] },
    {
      dispatch: { outputMapping: { parentResult: 'childOutcome' } },
      variables: [text('parentResult', '')],
    },
  ),
  line(OUTPUT_CHILD, 'Has found something out', [node('noop', 'core.identity')], {
    variables: [text('childOutcome', 'done')],
  }),
  line(
    'conformance-dispatch-deterministic-fail-child',
    'Comes back with nothing',
    [node('fail', 'core.fail', { code: 'worker_failed', message: 'This worker always fails.' })],
    { variables: [text('childOutcome', 'not to be told')], settings: { timeout: 5_000, maxRetries: 0 } },
  ),
  led(
    'conformance-dispatch-cross-worker-handoff',
    'Tells one worker what the other found',
    { mockDispatchPlan: [sends(CHILD_A, CHILD_B), DONE] },
    {
      dispatch: {
        perWorkerOutputMappings: { [CHILD_A]: { sharedVar: 'output' } },
        perWorkerInputMappings: { [CHILD_B]: { input: 'sharedVar' } },
      },
      variables: [text('sharedVar', '')],
    },
  ),
  led(
    'conformance-dispatch-per-worker-override',
    'Tells one worker something else',
    { mockDispatchPlan: [sends(CHILD_A, CHILD_B), DONE] },
    {
      dispatch: { inputMapping: { input: 'defaultX' }, perWorkerInputMappings: { [CHILD_B]: { input: 'sharedVar' } } },
      variables: [text('defaultX', 'default-x-value'), text('sharedVar', 'shared-value')],
    },
  ),
  line(CHILD_A, 'Finds something', [node('noop', 'core.identity')], { variables: [text('output', 'hello')] }),
  line(CHILD_B, 'Is told what was found', [node('noop', 'core.identity')]),
];

export const AGENT_FIXTURES: readonly WorkflowDefinition[] = [
  line('conformance-agent-identity', 'Stands for an agent', [
    pinned('echo', 'core.identity', { agentId: 'core.conformance.identity-agent', modelClass: 'chat' }),
  ]),
  line('conformance-agent-reasoning', 'Does what agents do', [
    pinned('reasoner', 'core.conformance.mock-agent', reasoning('core.conformance.reasoning-agent'), {
      mockReasoning: { summary: 'Looked at the question, asked a tool, handed it on.', tokenCount: 11 },
      mockToolCalls: [{ toolId: 'openwop.echo:echo', arguments: { x: 1 }, result: { x: 1 }, durationMs: 1 }],
      mockHandoff: { toAgentId: 'core.conformance.handoff-target', reason: 'to show it' },
      mockDecision: { decision: { next: 'done' }, confidence: 1 },
    }),
  ]),
  line('conformance-agent-low-confidence', 'Is not sure', [
    pinned('low-conf-decider', 'core.conformance.mock-agent', reasoning('core.conformance.low-conf-decider'), {
      mockDecision: { decision: { kind: 'unsure' }, confidence: 0.5 },
    }),
  ]),
  line('conformance-agent-pack-install', 'Does nothing, beside a pack of agents', [node('noop', 'core.identity')]),
  line('conformance-agent-pack-provenance', 'Stands for an agent from a pack', [
    pinned('pack-installed-node', 'core.identity', {
      agentId: 'core.conformance.pack-installed-agent',
      sourceManifestId: 'core.conformance.agent-pack.installed-agent',
      modelClass: 'chat',
    }),
  ]),
  ...LED_FIXTURES,
];

import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../src/protocol/running/workflows.ts';

function workflow(
  id: string,
  nodes: readonly WorkflowNode[],
  edges: readonly (readonly [string, string, Partial<WorkflowEdge>?])[],
  more: Partial<WorkflowDefinition> = {},
): WorkflowDefinition {
  return {
    id,
    name: id,
    version: '1',
    nodes: [...nodes],
    edges: edges.map(([sourceNodeId, targetNodeId, rest], index) => ({
      id: `e${index}`,
      sourceNodeId,
      targetNodeId,
      ...rest,
    })),
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
    ...more,
  };
}

function node(id: string, typeId: string, config: JsonObject = {}, more: Partial<WorkflowNode> = {}): WorkflowNode {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config, inputs: {}, ...more };
}

const line = (nodes: readonly WorkflowNode[]): [string, string][] =>
  nodes.slice(1).map((each, index) => [nodes[index]!.id, each.id]);

const long = Array.from({ length: 60 }, (_, index) => node(`n${index}`, 'core.noop'));
const effects = ['first', 'second', 'third'].map((id) => node(id, 'core.conformance.side-effect'));

/** Those in which a node completes, or sends for a child, more than once. */
const LOOP = 'refined';
const LED = 'led';
export const AGAIN: readonly string[] = [LOOP, LED];

/** Everything a run can do, in small. */
export const WORKFLOWS: readonly WorkflowDefinition[] = [
  workflow('line', [node('a', 'core.noop'), node('b', 'core.noop')], [['a', 'b']]),
  workflow('long', long, line(long)),
  workflow('wait', [node('wait', 'core.delay', { ms: 3_000 }), node('after', 'core.noop')], [['wait', 'after']]),
  workflow(
    'flaky',
    [
      node('flaky', 'sim.flaky', {}, { settings: { retry: { maxRetries: 4, delayMs: 200 } } }),
      node('after', 'core.noop'),
    ],
    [['flaky', 'after']],
  ),
  workflow('effects', effects, line(effects), { settings: { maxRetries: 6 } }),
  workflow(
    'steps',
    [
      node('steps', 'sim.steps', {}, { settings: { retry: { maxRetries: 8, delayMs: 1 } } }),
      node('after', 'core.noop'),
    ],
    [['steps', 'after']],
  ),
  workflow('slow', [node('slow', 'sim.slow', { ms: 4_000 }), node('after', 'core.noop')], [['slow', 'after']]),
  workflow(
    'diamond',
    [
      node('start', 'core.noop'),
      node('left', 'core.delay', { ms: 700 }),
      node('right', 'core.conformance.side-effect'),
      node('never', 'core.noop'),
      node('join', 'core.noop'),
    ],
    [
      ['start', 'left'],
      ['start', 'right'],
      ['start', 'never', { condition: { type: 'expression', expression: 'false' } }],
      ['left', 'join'],
      ['right', 'join'],
      ['never', 'join'],
    ],
    { settings: { maxRetries: 6 } },
  ),
  workflow(
    'parent',
    [
      node('call', 'core.subWorkflow', { workflowId: 'child', outputMapping: { result: 'answer' } }),
      node('after', 'core.noop'),
    ],
    [['call', 'after']],
  ),
  workflow(
    'child',
    [node('think', 'core.delay', { ms: 1_500 }), node('say', 'core.setVariable', { name: 'answer', value: 42 })],
    [['think', 'say']],
  ),
  workflow('patient', [node('call', 'core.subWorkflow', { workflowId: 'patient-child' })], []),
  workflow('patient-child', [node('think', 'core.delay', { ms: 300_000 })], []),
  workflow('doomed', [node('fail', 'core.fail'), node('never', 'core.noop')], [['fail', 'never']]),
  workflow(
    'caught',
    [node('fail', 'core.fail'), node('rescue', 'core.noop')],
    [['fail', 'rescue', { triggerRule: 'any_failed' }]],
  ),
  workflow('approval', [node('gate', 'core.approvalGate'), node('after', 'core.noop')], [['gate', 'after']]),
  workflow(
    'quorum',
    [node('gate', 'core.approvalGate', { requiredApprovals: 3, rejectionPolicy: 'majority', timeoutMs: 30_000 })],
    [],
  ),
  workflow(
    LOOP,
    [
      node('write', 'core.delay', { ms: 200 }),
      node('gate', 'core.approvalGate', { actions: ['accept', 'reject', 'refine'], timeoutMs: 15_000 }),
      node('after', 'core.noop'),
    ],
    [
      ['write', 'gate'],
      ['gate', 'write', { condition: { type: 'expression', expression: 'output.action == "refine"' } }],
      ['gate', 'after', { condition: { type: 'expression', expression: 'output.action != "refine"' } }],
    ],
    { settings: { maxLoopbackIterations: 3 } },
  ),
  workflow(
    'governed',
    [node('gate', 'core.openwop.governance.approvalGate', { requiredRole: 'reviewer', quorum: 2, timeoutSec: 20 })],
    [],
  ),
  workflow(
    'branches',
    [
      node('one', 'core.interrupt', { kind: 'custom', data: { customKind: 'one' } }),
      node('two', 'core.interrupt', { kind: 'external-event', data: { eventType: 'e', correlation: { id: 1 } } }),
      node('late', 'core.interrupt', { kind: 'custom', data: { customKind: 'late' }, timeoutMs: 4_000 }),
      node('slow', 'sim.slow', { ms: 2_000 }),
      node('join', 'core.noop'),
    ],
    [
      ['one', 'join', { triggerRule: 'all_complete' }],
      ['two', 'join', { triggerRule: 'all_complete' }],
      ['late', 'join', { triggerRule: 'all_complete' }],
      ['slow', 'join', { triggerRule: 'all_complete' }],
    ],
  ),
  workflow(
    'agent',
    [node('agent', 'core.agents.run', { systemPrompt: 'You try.' }), node('after', 'core.noop')],
    [['agent', 'after']],
    {
      settings: { maxRetries: 8 },
    },
  ),
  workflow(
    LED,
    [
      node('supervisor', 'core.orchestrator.supervisor', {
        mockDispatchPlan: [
          { kind: 'next-worker', nextWorkerIds: ['child', 'line'] },
          { kind: 'next-worker', nextWorkerIds: ['doomed'] },
        ],
      }),
      node('dispatch', 'core.dispatch', { outputMapping: { found: 'answer' } }),
    ],
    [
      ['supervisor', 'dispatch'],
      ['dispatch', 'supervisor'],
    ],
  ),
  workflow('waiting-parent', [node('call', 'core.subWorkflow', { workflowId: 'approval' })], []),
  workflow('too-long', [node('wait', 'core.delay', { ms: 60_000 })], [], { settings: { timeout: 2_000 } }),
];

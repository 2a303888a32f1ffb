import type { JsonObject } from '../../protocol/format/json.ts';
import type {
  PortValue,
  WorkflowDefinition,
  WorkflowNode,
  WorkflowVariable,
} from '../../protocol/running/workflows.ts';

/** The workflows that conformance suites start by name. */

interface Extras {
  readonly variables?: readonly WorkflowVariable[];
  readonly settings?: WorkflowDefinition['settings'];
  readonly more?: Partial<WorkflowDefinition>;
}

/** A workflow whose nodes follow each other. */
export function line(
  id: string,
  name: string,
  nodes: readonly WorkflowNode[],
  extras: Extras = {},
): WorkflowDefinition {
  return {
    id,
    name,
    version: '1.0',
    nodes: nodes.map((node, index) => ({ ...node, position: { x: index * 200, y: 0 } })),
    edges: nodes.slice(1).map((node, index) => ({
      id: `${nodes[index]!.id}-${node.id}`,
      sourceNodeId: nodes[index]!.id,
      targetNodeId: node.id,
    })),
    triggers: [{ id: 'manual', type: 'manual', enabled: true }],
    variables: [...(extras.variables ?? [])],
    metadata: { tags: ['conformance'] },
    settings: extras.settings ?? { timeout: 30_000 },
    ...extras.more,
  };
}

export function node(
  id: string,
  typeId: string,
  config: JsonObject = {},
  inputs: Record<string, PortValue> = {},
): WorkflowNode {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config, inputs };
}

const noop = (id: string): WorkflowNode => node(id, 'core.noop');
const variable = (name: string): PortValue => ({ type: 'variable', variableName: name });
const waitFor = (defaultValue: number, timeout = 60_000): [readonly WorkflowNode[], Extras] => [
  [node('wait', 'core.delay', {}, { delayMs: variable('delayMs') })],
  {
    variables: [{ name: 'delayMs', type: 'number', required: true, defaultValue }],
    settings: { timeout, maxRetries: 0 },
  },
];
const text = (name: string, defaultValue?: string): WorkflowVariable =>
  defaultValue === undefined ? { name, type: 'string' } : { name, type: 'string', defaultValue };

/** Asks the programmed model for JSON. */
const structured = (property: JsonObject, config: JsonObject = {}): WorkflowNode =>
  node(
    'structured-call',
    'core.ai.structuredOutput',
    {
      provider: 'mock',
      model: 'mock-mini',
      outputSchema: { type: 'object', required: Object.keys(property), properties: property },
      ...config,
    },
    { messages: { type: 'static', value: [{ role: 'user', content: 'Answer with JSON that fits.' }] } },
  );
const VALID = { valid: { type: 'boolean' } };

const append = (id: string, value: string): WorkflowNode =>
  node(id, 'core.channelWrite', { channelName: 'events', reducer: 'append', ttlMs: 200, value });

const callChild = (workflowId: string, mappings: JsonObject): WorkflowNode =>
  node('subwf-call', 'core.subWorkflow', {
    workflowId,
    waitForCompletion: true,
    onChildFailure: 'fail-parent',
    ...mappings,
  });

const MAPPED_CHILD = 'conformance-subworkflow-input-mapping-child';
const mapsInput = callChild(MAPPED_CHILD, { inputMapping: { receivedPrdId: 'currentPrdId' } });

/** Another tenant has something there. */
export const FOREIGN_MEMORY = 'conformance/another-tenant/agent-memory';

const memory = (name: string, config: JsonObject): WorkflowDefinition =>
  line(`conformance-agent-memory-${name}`, `Tries memory: ${name}`, [
    {
      ...node('memory', 'core.conformance.memory', config),
      agent: { agentId: 'core.conformance.memory-agent', memoryRef: `conformance/agent-memory-${name}` },
    },
  ]);

const MOCK_AI = 'local.sample.demo.mock-ai';
const writerPrompt = (name: string): string => `prompt:conformance.prompt.${name}@1.0.0`;

/** People take their time. */
const PATIENT: Extras = { settings: { timeout: 0 } };

const LOOPBACK: WorkflowDefinition = {
  ...line('conformance-approval-reject-loopback', 'Asks again after a no', [
    noop('start'),
    node('gate', 'core.approvalGate', { title: 'Approve', actions: ['accept', 'reject'] }),
    noop('revise'),
  ]),
  edges: [
    { id: 'start-gate', sourceNodeId: 'start', targetNodeId: 'gate', triggerRule: 'any_success' },
    { id: 'gate-revise', sourceNodeId: 'gate', targetNodeId: 'revise', triggerRule: 'any_failed' },
    { id: 'revise-gate', sourceNodeId: 'revise', targetNodeId: 'gate', triggerRule: 'any_success' },
  ],
  settings: { timeout: 0, maxLoopbackIterations: 2 },
};

/** Only for a host that has an MCP server to ask. */
export const MCP_FIXTURE = line('conformance-mcp-tool-roundtrip', 'Asks a tool to say it again', [
  node('mcp-call', 'core.ai.callPrompt', { mcp: { tool: 'echo', arguments: { text: 'roundtrip-probe' } } }),
]);

export const FIXTURES: readonly WorkflowDefinition[] = [
  line('conformance-noop', 'Does nothing', [noop('noop')]),
  line(
    'conformance-identity',
    'Gives back what it is given',
    [node('echo', 'core.identity', {}, { payload: variable('payload') })],
    { variables: [{ name: 'payload', type: 'object', required: true }] },
  ),
  line('conformance-delay', 'Waits a second', ...waitFor(1_000)),
  line('conformance-cancellable', 'Waits half a minute', ...waitFor(30_000, 120_000)),
  line(
    'conformance-replay-side-effect',
    'Waits, then touches the world',
    [
      node('wait', 'core.conformance.hold', {}, { delayMs: variable('delayMs') }),
      node('effect', 'core.conformance.side-effect'),
    ],
    {
      variables: [{ name: 'delayMs', type: 'number', required: true, defaultValue: 30_000 }],
      settings: { timeout: 60_000 },
    },
  ),
  line('conformance-failure', 'Always fails', [node('fail', 'core.fail')], {
    settings: { timeout: 30_000, maxRetries: 0 },
  }),
  line('conformance-idempotent', 'Does nothing, with a nonce', [noop('noop')], {
    variables: [{ name: 'nonce', type: 'string', required: true }],
  }),
  line('conformance-multi-node', 'Three nodes in a line', [noop('a'), noop('b'), noop('c')]),
  line('conformance-cap-breach', 'Six nodes in a line', ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'].map(noop)),
  line('conformance-run-duration-breach', 'Waits longer than it may', ...waitFor(30_000)),
  line('conformance-capability-missing', 'Needs what nobody has', [node('n1', 'conformance.requiresMissing')], {
    settings: { timeout: 10_000, maxRetries: 0 },
  }),
  line('conformance-configurable-schema', 'Says what may be configured', [noop('noop')], {
    more: {
      configurableSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        additionalProperties: false,
        properties: {
          recursionLimit: { type: 'integer', minimum: 1 },
          tags: { type: 'array', items: { type: 'string' } },
        },
      },
    },
  }),
  line('conformance-version-fold', 'Folds under any engine version', [noop('noop')]),
  line(
    'conformance-channel-ttl',
    'Writes to a channel whose entries expire',
    [
      append('write-a', 'a'),
      append('write-b', 'b'),
      append('write-c', 'c'),
      node('ttl-wait', 'core.delay', { ms: 300 }),
      append('write-d', 'd'),
    ],
    { settings: { timeout: 30_000, maxRetries: 0 } },
  ),
  line(
    'conformance-subworkflow-parent',
    'Runs another workflow',
    [
      noop('parent-start'),
      callChild('conformance-subworkflow-child', { outputMapping: { childOutcome: 'childResult' } }),
      noop('parent-end'),
    ],
    { settings: { timeout: 60_000, maxRetries: 0 } },
  ),
  line('conformance-subworkflow-child', 'Is run by another workflow', [noop('child-n1'), noop('child-n2')], {
    variables: [text('childResult', 'child-completed')],
  }),
  line('conformance-subworkflow-input-mapping', 'Hands a variable down', [mapsInput], {
    variables: [text('currentPrdId', 'prd-1')],
  }),
  line('conformance-subworkflow-input-mapping-no-default', 'Hands down a variable that is not set', [mapsInput], {
    variables: [text('currentPrdId')],
  }),
  line(MAPPED_CHILD, 'Is handed a variable', [node('noop', 'core.identity')], {
    variables: [text('receivedPrdId', 'baked-in')],
  }),
  line(
    'conformance-dispatch-cancellable-child',
    'Waits to be cancelled',
    [node('wait', 'core.delay', { durationMs: 30_000 })],
    { variables: [text('childOutcome', 'this-should-not-be-harvested')], settings: { timeout: 60_000, maxRetries: 0 } },
  ),
  line(
    'conformance-approval',
    'Asks for approval',
    [
      node('gate', 'core.approvalGate', {
        title: 'Approve',
        description: 'Say yes or no',
        actions: ['accept', 'reject'],
      }),
    ],
    PATIENT,
  ),
  line(
    'conformance-approval-timeout',
    'Asks for approval, not for long',
    [node('gate', 'core.approvalGate', { title: 'Approve', actions: ['accept', 'reject'], timeoutMs: 1_500 })],
    PATIENT,
  ),
  line(
    'conformance-clarification',
    'Asks a question',
    [node('ask', 'core.clarificationGate', { questions: [{ id: 'q1', question: 'Which colour?' }] })],
    PATIENT,
  ),
  line(
    'conformance-interrupt-external-event',
    'Waits for an event',
    [
      node('wait-for-external', 'core.interrupt', {
        kind: 'external-event',
        data: {
          eventType: 'conformance.external.completed',
          correlation: { orderId: 'fixture-order-1', status: 'completed' },
        },
        timeoutMs: 60_000,
      }),
    ],
    PATIENT,
  ),
  line(
    'conformance-interrupt-quorum',
    'Asks three',
    [
      node('gate', 'core.approvalGate', {
        title: 'Approve by three',
        actions: ['accept', 'reject'],
        requiredApprovals: 3,
        rejectionPolicy: 'majority',
        approversList: [],
      }),
    ],
    PATIENT,
  ),
  line(
    'conformance-interrupt-auth-required',
    'Asks somebody who is signed in',
    [
      node('gate', 'core.approvalGate', {
        title: 'Approve, signed in',
        actions: ['accept', 'reject'],
        profile: 'openwop-interrupt-auth-required',
      }),
    ],
    PATIENT,
  ),
  line(
    'conformance-interrupt-parent-child-cancel',
    'Waits for a child that waits',
    [
      node('spawn-child', 'core.subWorkflow', {
        workflowId: 'conformance-interrupt-parent-child-cancel-child',
        propagateCancellation: true,
      }),
    ],
    PATIENT,
  ),
  line(
    'conformance-interrupt-parent-child-cancel-child',
    'Is waited for while it waits',
    [node('child-gate', 'core.approvalGate', { title: 'Approve the child', actions: ['accept', 'reject'] })],
    PATIENT,
  ),
  line(
    'conformance-subworkflow-mid-run-mutation',
    'Hands a variable down once',
    [callChild('conformance-subworkflow-mid-run-mutation-child', { inputMapping: { receivedPrdId: 'currentPrdId' } })],
    { variables: [text('currentPrdId', 'seeded-id')] },
  ),
  line(
    'conformance-subworkflow-mid-run-mutation-child',
    'Keeps what it was handed',
    [node('child-gate', 'core.approvalGate', { title: 'Hold the child', actions: ['accept', 'reject'] })],
    { variables: [text('receivedPrdId', 'baked-in')] },
  ),
  LOOPBACK,
  line('conformance-prompt-end-to-end', 'Speaks from a prompt of the library', [
    node('writer', MOCK_AI, { systemPromptRef: writerPrompt('writer-system') }),
  ]),
  line('conformance-prompt-all-four-kinds', 'Speaks from prompts of every kind', [
    node('all-kinds', MOCK_AI, {
      systemPromptRef: writerPrompt('writer-system'),
      userPromptRef: writerPrompt('writer-user'),
      schemaHintPromptRef: writerPrompt('schema-hint'),
      fewShotPromptRefs: [writerPrompt('few-shot'), writerPrompt('few-shot-2')],
    }),
  ]),
  line('conformance-envelope-retry-attempted', 'Asks again for JSON', [structured(VALID, { retryOnInvalidJson: 0 })]),
  line('conformance-envelope-retry-exhausted', 'Asks in vain for JSON', [structured(VALID)]),
  line('conformance-envelope-refusal', 'Is refused JSON', [structured(VALID)]),
  line('conformance-envelope-truncated', 'Is given half an answer', [structured(VALID, { maxTokens: 50 })]),
  line('conformance-envelope-truncation-cap-exhaustion', 'Is given half answers alone', [
    structured(VALID, { maxTokens: 50 }),
  ]),
  line('conformance-envelope-recovery-applied', 'Finds JSON among words', [
    structured({ result: { type: 'string' } }, { retryOnInvalidJson: 0 }),
  ]),
  memory('roundtrip', { memoryAction: 'write-then-read' }),
  memory('redaction', { memoryAction: 'redaction-probe', byokSecretId: 'conformance-test-secret' }),
  memory('ttl', { memoryAction: 'ttl-probe' }),
  memory('cross-tenant', { memoryAction: 'cross-tenant-probe', probeMemoryRef: FOREIGN_MEMORY }),
  line('conformance-stream-text', 'Streams what a mock model says', [
    node('ai', 'core.ai.callPrompt', { promptId: 'conformance.stream-text-noop', expectsStreaming: true }),
  ]),
];

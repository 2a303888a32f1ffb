import type { Scenario } from '../scenario.ts';

const SAMPLE = '/v1/host/sample';
const CHAINS = 'vendor.openwop.workflow-chain-sample';
const TEMPLATE = { templateId: 'compare.learnt', version: '1.0.0', kind: 'user', text: 'List five points.' };

const REQUESTS: readonly (readonly [path: string, body: object])[] = [
  ['authorization/decide', { principal: 'nobody', action: 'runs:cancel', resource: 'run' }],
  ['governance/approval-gate', { scenario: 'unauthorized-grant', principal: 'somebody' }],
  ['governance/approval-gate', { scenario: 'override', principal: 'olga', reason: 'fire' }],
  ['prompt/resolve', { kind: 'system', node: { nodeId: 'n', config: { systemPromptRef: 'prompt:a@1.0.0' } } }],
  ['prompt/compose', { templateId: 'conformance.prompt.trust-marker', bindings: { userPayload: 'hi' } }],
  ['scheduling/tick', { scenario: 'single-tick' }],
  ['scheduling/tick', { scenario: 'missed-window', missedTicks: 5 }],
  ['heartbeat/tick', { heartbeatId: 'compare', observedState: { unread: 0 } }],
  ['heartbeat/tick', { heartbeatId: 'compare', observedState: { unread: 1 } }],
  ['commitment/fire', { memoryRef: 'mem://compare', condition: 'time' }],
  ['commitment/fire', { memoryRef: 'mem://compare', condition: 'predicate' }],
  ['memory/consolidate', { memoryRef: 'mem://compare', includeSecretCanary: true }],
  [
    'workflow-chain:expand',
    { packName: CHAINS, chainId: `${CHAINS}.summarize-text`, parameters: { sourceText: 'a' }, expansionId: 'x1' },
  ],
  ['test/surface', { tenantId: 'a', surface: 'webhooks', op: 'list' }],
  ['test/proposals', { kind: 'prompt-template', artifact: TEMPLATE, evidenceKey: 'one' }],
];

/** The operations that only conformance suites use. */
export const seams: Scenario = {
  name: 'seams',
  modes: ['conformance'],
  async play(stage) {
    for (const [path, body] of REQUESTS) {
      const answer = await stage.as('owner').post(`${SAMPLE}/${path}`, body);
      stage.record(`${path} ${JSON.stringify(body)}`, { status: answer.status, body: answer.body });
    }
  },
};

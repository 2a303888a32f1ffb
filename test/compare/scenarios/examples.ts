import { type LogOrder, recordRun, settled } from '../recorded-run.ts';
import type { Scenario, Stage } from '../scenario.ts';

interface Example {
  readonly name: string;
  readonly workflowId: string;
  readonly inputs: object;
  /** What a person answers, for the node that asks. */
  readonly answer?: { readonly nodeId: string; readonly resumeValue: object };
  readonly order?: LogOrder;
}

const ORDER = { orderId: 'A-1001', card: '4242 4242 4242 4242' };
const MEASURED = { failingTests: 3, vulnerabilities: 0, sizeKb: 300, undocumentedChanges: 0 };
const signOff = (action: string) => ({ nodeId: 'sign-off', resumeValue: { action } });

const EXAMPLES: readonly Example[] = [
  {
    name: 'ticket of an outage',
    workflowId: 'support-triage',
    inputs: { subject: 'The dashboard is down', body: 'Error 503', plan: 'enterprise', email: 'someone@example.com' },
    order: 'by-node',
  },
  { name: 'ticket of a free plan', workflowId: 'support-triage', inputs: { subject: 'I cannot log in', plan: 'free' } },
  { name: 'ticket of an unknown plan', workflowId: 'support-triage', inputs: { subject: 'Hello', plan: 'platinum' } },
  {
    name: 'release that ships',
    workflowId: 'release-checklist',
    inputs: { version: '2.4.0', changes: ['Faster start'] },
    answer: signOff('accept'),
    order: 'by-node',
  },
  {
    name: 'release that is rejected',
    workflowId: 'release-checklist',
    inputs: { version: '2.4.0' },
    answer: signOff('reject'),
    order: 'by-node',
  },
  {
    name: 'release that is held',
    workflowId: 'release-checklist',
    inputs: { version: '2.4.0', measurements: MEASURED },
    order: 'by-node',
  },
  { name: 'release without a version', workflowId: 'release-checklist', inputs: { version: 'next' } },
  { name: 'order', workflowId: 'order-fulfilment', inputs: ORDER },
  { name: 'order that fails to ship', workflowId: 'order-fulfilment', inputs: { ...ORDER, failAt: 'ship' } },
  { name: 'order that is not undone', workflowId: 'order-fulfilment', inputs: { ...ORDER, failAt: 'ship,refund' } },
  { name: 'order of nothing', workflowId: 'order-fulfilment', inputs: { ...ORDER, items: [] } },
  {
    name: 'sales',
    workflowId: 'sales-report',
    inputs: { table: 'region,price,count\nnorth,2.50,4\nsouth,10,3\nnorth,free,1\nnorth,1,2\n' },
    order: 'by-node',
  },
  { name: 'night', workflowId: 'nightly-report', inputs: { team: 'facilities' } },
  { name: 'night without reminders', workflowId: 'nightly-report', inputs: { overdueAfterDays: 14 } },
];

async function playExample(
  stage: Stage,
  { name, workflowId, inputs, answer, order = 'exact' }: Example,
): Promise<void> {
  const api = stage.as('editor');
  const runId = await api.run(workflowId, { inputs });
  await settled(api, runId);
  if (answer) {
    await recordRun(stage, api, runId, { name: `${name}, waiting`, order });
    const { nodeId, resumeValue } = answer;
    const { status, body } = await api.post(`/v1/runs/${runId}/interrupts/${nodeId}`, { resumeValue });
    stage.record(`${name}: answer`, { status, body });
  }
  await api.ended(runId);
  await recordRun(stage, api, runId, { name, order });
}

/** The example workflows that need nothing besides the host; each has ids of its own. */
export const examples: readonly Scenario[] = EXAMPLES.map((example) => ({
  name: `example: ${example.name}`,
  modes: ['plain'],
  play: (stage) => playExample(stage, example),
}));

const FOLDER = 'examples/triage';
const TICKETS = [
  { customer: 'acme', text: 'Nothing loads since nine' },
  { customer: 'hooli', text: 'It does not work' },
];

/** The agent of the triage example: sure of one ticket, and asking about the other. */
export const triage: Scenario = {
  name: 'example: triage by an agent',
  modes: ['plain'],
  async play(stage) {
    for (const args of [
      ['packs', 'install', `${FOLDER}/pack.json`],
      ['workflows', 'register', `${FOLDER}/customer.json`],
      ['workflows', 'register', `${FOLDER}/triage.json`],
      ['agents', 'get', 'vendor.example.triage.sorter'],
    ]) {
      const { code, output } = await stage.capstan([...args, '--json'], 'reviewer');
      stage.record(args.join(' '), { code, output: JSON.parse(output) });
    }
    const api = stage.as('reviewer');
    for (const inputs of TICKETS) {
      const runId = await api.run('triage', { inputs });
      const { status, interrupt } = await settled(api, runId);
      await recordRun(stage, api, runId, { name: `${inputs.customer}, ${status}` });
      if (!interrupt) continue;
      const resumeValue = { decision: { queue: 'access', priority: 'P3' } };
      await api.post(`/v1/runs/${runId}/interrupts/${interrupt.nodeId}`, { resumeValue });
      await api.ended(runId);
      await recordRun(stage, api, runId, { name: inputs.customer });
    }
  },
};

/** The example of a workflow that is called as an MCP tool, played by its own client. */
export const mcpTool: Scenario = {
  name: 'example: workflow as an MCP tool',
  modes: ['plain'],
  async play(stage) {
    stage.record('output', await stage.program('examples/mcp-tool/call.mjs', 'editor'));
    const { body } = await stage.as('editor').get('/v1/host/capstan/runs?workflowId=shipping-quote');
    for (const [index, { runId }] of body.items.entries()) {
      await recordRun(stage, stage.as('editor'), runId, { name: `run ${index + 1}` });
    }
  },
};

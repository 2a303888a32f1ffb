import type { Answer, Api } from '../../support/api.ts';
import { recordRun, settled } from '../recorded-run.ts';
import type { Role } from '../roles.ts';
import type { Scenario, Stage } from '../scenario.ts';

type Body = Answer['body'];

/** How a fixture is started and answered, where the defaults do not do. */
interface Treatment {
  readonly start?: object;
  /** What each question is answered with; `accept` unless this says otherwise. */
  readonly resumeValue?: unknown;
  /** What the mock model says, answer by answer. */
  readonly program?: readonly object[];
}

const STRUCTURED = 'structured-call';
const VALID = { content: '{"valid":true}' };
const CUT = { stopReason: 'max_tokens', content: '{"valid":' };

const TREATMENTS: Record<string, Treatment> = {
  'conformance-identity': { start: { inputs: { payload: { greeting: 'Hello', list: [1, 2.5, null] } } } },
  'conformance-cancellable': { start: { inputs: { delayMs: 20 } } },
  'conformance-replay-side-effect': { start: { inputs: { delayMs: 20 } } },
  'conformance-idempotent': { start: { inputs: { nonce: 'one' } } },
  'conformance-cap-breach': { start: { configurable: { recursionLimit: 3 } } },
  'conformance-run-duration-breach': { start: { configurable: { runTimeoutMs: 30 } } },
  'conformance-configurable-schema': { start: { configurable: { recursionLimit: 9, tags: ['a'] } } },
  'conformance-clarification': { resumeValue: { answers: [{ id: 'q1', answer: 'Blue' }] } },
  'conformance-interrupt-external-event': { resumeValue: { orderId: 'fixture-order-1', status: 'completed' } },
  'conformance-envelope-retry-attempted': { program: [{ content: 'no JSON' }, VALID] },
  'conformance-envelope-retry-exhausted': { program: [1, 2, 3, 4, 5].map(() => ({ content: 'no JSON' })) },
  'conformance-envelope-refusal': { program: [{ stopReason: 'refusal', refusalText: 'I will not.', content: '' }] },
  'conformance-envelope-truncated': { program: [CUT, VALID] },
  'conformance-envelope-truncation-cap-exhaustion': { program: [CUT, CUT, CUT, VALID] },
  'conformance-envelope-recovery-applied': { program: [{ content: '```json\n{"result":"a"}\n```' }] },
};

/** Takes too long, or is a child that its parent has started before. */
const LEFT_OUT = new Set(['conformance-dispatch-cancellable-child']);
/** Who answers the first question, the second and so on: some gates ask several people. */
const ANSWERERS: readonly Role[] = ['editor', 'reviewer', 'second', 'owner'];

/** Every conformance fixture that the host says it has, run to its end. */
export const fixtures: Scenario = {
  name: 'fixtures',
  modes: ['conformance'],
  async play(stage) {
    const { body } = await stage.anonymous.get('/.well-known/openwop');
    for (const id of body.fixtures as string[]) if (!LEFT_OUT.has(id)) await playFixture(stage, id);
  },
};

async function playFixture(stage: Stage, workflowId: string): Promise<void> {
  const { start = {}, program, resumeValue = { action: 'accept' } } = TREATMENTS[workflowId] ?? {};
  const api = stage.as('editor');
  if (program) await api.post('/v1/host/sample/test/mock-ai/program', { nodeId: STRUCTURED, program });
  const { status, body } = await api.post('/v1/runs', { workflowId, ...start });
  stage.record(`${workflowId}: start`, { status, body });
  if (status !== 201) return;
  await answerAll(stage, { api, workflowId, runId: body.runId, resumeValue });
  await recordRun(stage, api, body.runId, { name: workflowId });
}

interface Asked {
  readonly api: Api;
  readonly workflowId: string;
  readonly runId: string;
  readonly resumeValue: unknown;
}

/** Answers what the run asks until it asks no more; what cannot be answered is cancelled. */
async function answerAll(stage: Stage, { api, workflowId, runId, resumeValue }: Asked): Promise<void> {
  for (const role of ANSWERERS) {
    const snapshot: Body = await settled(api, runId);
    if (!snapshot.status.startsWith('waiting-')) return;
    stage.record(`${workflowId}: question`, snapshot);
    const nodeId = snapshot.interrupt?.nodeId;
    const path = nodeId === undefined ? undefined : `/v1/runs/${runId}/interrupts/${encodeURIComponent(nodeId)}`;
    const answer = path === undefined ? undefined : await stage.as(role).post(path, { resumeValue });
    stage.record(`${workflowId}: answer`, answer && { status: answer.status, body: answer.body });
    if (answer?.status !== 200) break;
  }
  const last = await settled(api, runId);
  if (last.status.startsWith('waiting-')) await api.post(`/v1/runs/${runId}/cancel`, { reason: 'no more answers' });
}

import type { Answer, Api } from '../../support/api.ts';
import { until } from '../../support/until.ts';
import { edge, expression, fixed, line, node, workflow } from '../definitions.ts';
import { recordRun, settled } from '../recorded-run.ts';
import type { Scenario, Stage } from '../scenario.ts';

type Body = Answer['body'];

const WORKFLOWS = '/v1/host/capstan/workflows';
const FOR_EACH = 'vendor.capstan.flow.for-each';

const BRANCHING = workflow(
  'compare-branch',
  [node('start', 'core.identity', { inputs: { amount: expression('inputs.amount') } }), node('large'), node('small')],
  [
    edge('start', 'large', { condition: { type: 'expression', expression: 'nodes.start.amount > 10' } }),
    edge('start', 'small', { condition: { type: 'expression', expression: 'nodes.start.amount <= 10' } }),
  ],
  { variables: [{ name: 'amount', type: 'number', required: true }] },
);

const RETRYING = workflow(
  'compare-retry',
  [
    node('fails', 'core.fail', {
      config: { code: 'always', message: 'It always fails.' },
      settings: { retry: { maxRetries: 2, delayMs: 5 } },
    }),
  ],
  [],
);

const EACH_ITEM = workflow(
  'compare-item',
  [node('take', 'core.identity', { inputs: { item: expression('inputs.item') } })],
  [],
  {
    variables: [{ name: 'item', type: 'string' }],
  },
);

const LOOPING = workflow(
  'compare-for-each',
  [
    node('all', FOR_EACH, {
      config: { workflowId: 'compare-item', itemVariable: 'item', concurrency: 1 },
      inputs: { array: fixed(['a', 'b', 'c']) },
    }),
    node('after', 'core.identity', {
      inputs: { results: { type: 'connection', nodeId: 'all', outputKey: 'results' } },
    }),
  ],
  line('all', 'after'),
);

const WAITING = workflow(
  'compare-wait',
  [
    node('before'),
    node('gate', 'core.approvalGate', { config: { title: 'Go on?', actions: ['accept'] } }),
    node('after'),
  ],
  line('before', 'gate', 'after'),
);

const SLEEPING = workflow('compare-sleep', [node('sleep', 'core.delay', { config: { delayMs: 800 } })], []);

const DEFINITIONS = [BRANCHING, RETRYING, EACH_ITEM, LOOPING, WAITING, SLEEPING];
const brief = ({ status, body }: Answer): object => ({ status, body });

/** Registers the workflows; those that another scenario has registered before stay as they are. */
async function registerAll(api: Api): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const definition of DEFINITIONS) answers.push(await api.post(WORKFLOWS, definition));
  return answers;
}

/** Registers workflows of its own and runs them: branches, retries, loops. */
export const flows: Scenario = {
  name: 'flows',
  modes: ['plain', 'conformance'],
  async play(stage) {
    const api = stage.as('editor');
    stage.record('registered', (await registerAll(api)).map(brief));
    const starts: [string, object][] = [
      ['compare-branch', { inputs: { amount: 20 } }],
      ['compare-branch', { inputs: { amount: 5 }, tags: ['small'], metadata: { why: 'compare' } }],
      ['compare-retry', {}],
      ['compare-for-each', {}],
    ];
    for (const [workflowId, rest] of starts) {
      const runId = await api.run(workflowId, rest);
      await api.ended(runId);
      await recordRun(stage, api, runId, { name: `${workflowId} ${JSON.stringify(rest)}` });
    }
  },
};

/** What callers do to runs: pause, resume, answer, cancel, fork, replay, compare, annotate, follow. */
export const commands: Scenario = {
  name: 'commands',
  modes: ['plain', 'conformance'],
  async play(stage) {
    const api = stage.as('editor');
    await registerAll(api);
    const runId = await api.run('compare-wait');
    await settled(api, runId);
    const path = `/v1/runs/${runId}`;
    for (const [name, body] of [
      [':pause', {}],
      [':resume', {}],
      ['/interrupts/gate', { resumeValue: { action: 'ask' } }],
      ['/interrupts/gate', { resumeValue: { action: 'accept' } }],
    ] as const) {
      stage.record(name, brief(await api.post(path + name, body)));
    }
    await api.ended(runId);
    stage.record('cancel after the end', brief(await api.post(`${path}/cancel`)));
    stage.record('answer after the end', brief(await api.post(`${path}/interrupts/gate`, { resumeValue: {} })));
    await recordRun(stage, api, runId, { name: 'answered' });
    await recordStreams(stage, api, runId);
    await recordForks(stage, api, runId);
    await recordFeedback(stage, api, runId);
    await recordCancelled(stage, api);
    await recordPaused(stage, api);
  },
};

async function recordCancelled(stage: Stage, api: Api): Promise<void> {
  const runId = await api.run('compare-wait');
  await settled(api, runId);
  stage.record('cancel', brief(await api.post(`/v1/runs/${runId}/cancel`, { reason: 'not needed' })));
  await api.ended(runId);
  await recordRun(stage, api, runId, { name: 'cancelled' });
}

async function recordPaused(stage: Stage, api: Api): Promise<void> {
  const runId = await api.run('compare-sleep');
  await until(
    async (): Promise<Body> => (await api.get(`/v1/runs/${runId}`)).body,
    ({ nodeStates }) => nodeStates?.sleep?.status === 'running',
  );
  for (const verb of ['pause', 'pause', 'resume']) {
    stage.record(verb, brief(await api.post(`/v1/runs/${runId}:${verb}`)));
  }
  await api.ended(runId);
  await recordRun(stage, api, runId, { name: 'paused' });
}

async function recordStreams(stage: Stage, api: Api, runId: string): Promise<void> {
  for (const mode of ['values', 'updates', 'messages', 'debug']) {
    const { status, frames } = await api.frames(`/v1/runs/${runId}/events?streamMode=${mode}`);
    const parsed = frames.map(({ data, ...frame }) => ({ ...frame, data: data && JSON.parse(data) }));
    stage.record(`stream of ${mode}`, { status, frames: parsed });
  }
  stage.record('poll', (await api.get(`/v1/runs/${runId}/events/poll?lastSequence=2&timeout=1`)).body);
  stage.record('state', (await api.get(`/v1/host/capstan/runs/${runId}/state?sequence=3`)).body);
}

async function recordForks(stage: Stage, api: Api, source: string): Promise<void> {
  for (const body of [
    { mode: 'replay', fromSeq: 0 },
    { mode: 'branch', fromSeq: 3 },
    { mode: 'replay', fromSeq: 999 },
  ]) {
    const name = `fork ${JSON.stringify(body)}`;
    const answer = await api.post(`/v1/runs/${source}:fork`, body);
    stage.record(name, brief(answer));
    if (answer.status !== 201) continue;
    const { runId } = answer.body;
    const { status } = await settled(api, runId);
    if (status.startsWith('waiting-'))
      await api.post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
    await api.ended(runId);
    await recordRun(stage, api, runId, { name });
    stage.record(`${name}: diff`, (await api.get(`/v1/runs/${source}:diff?other=${runId}`)).body);
  }
}

async function recordFeedback(stage: Stage, api: Api, runId: string): Promise<void> {
  const path = `/v1/runs/${runId}/annotations`;
  const signal = { kind: 'rating', rating: 4 };
  stage.record('annotation', brief(await api.post(path, { target: { nodeId: 'after' }, signal })));
  stage.record('annotations', (await api.get(path)).body);
  stage.record('summary', (await api.get('/v1/host/capstan/feedback/summary')).body);
}

/** Idempotency keys: the same request again, another request with the same key. */
export const idempotency: Scenario = {
  name: 'idempotency',
  modes: ['plain'],
  async play(stage) {
    const api = stage.as('editor');
    await registerAll(api);
    const key = { 'idempotency-key': 'compare-0001-0001' };
    const start = (inputs: object): Promise<Answer> =>
      api.post('/v1/runs', { workflowId: 'compare-branch', inputs }, key);
    stage.record('first', brief(await start({ amount: 1 })));
    stage.record('again', brief(await start({ amount: 1 })));
    stage.record('other body', brief(await start({ amount: 2 })));
  },
};

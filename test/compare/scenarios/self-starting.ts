import type { Answer, Api } from '../../support/api.ts';
import { until } from '../../support/until.ts';
import { node, workflow } from '../definitions.ts';
import { recordRun } from '../recorded-run.ts';
import type { Scenario, Stage } from '../scenario.ts';

type Body = Answer['body'];

const HOST = '/v1/host/capstan';
const WORKFLOW = workflow('compare-started', [node('only')], []);
const NEVER = '0 0 29 2 *';

/** Runs that nobody starts by hand: of a schedule, a commitment and a heartbeat. */
export const selfStarting: Scenario = {
  name: 'self-starting',
  modes: ['plain'],
  async play(stage) {
    const api = stage.as('editor');
    await api.post(`${HOST}/workflows`, WORKFLOW);
    const [workflowId, inputs, now] = ['compare-started', { a: 1 }, new Date().toISOString()];
    await recordStarted(stage, 'schedule', `${HOST}/schedules`, { workflowId, inputs, runAt: now });
    await recordStarted(stage, 'commitment', `${HOST}/commitments`, { workflowId, memoryRef: 'mem://notes', at: now });
    await recordIdle(stage, api, `${HOST}/schedules`, { workflowId, cron: NEVER, enabled: false });
    await recordIdle(stage, api, `${HOST}/schedules`, { workflowId, cron: 'every day' });
    await recordIdle(stage, api, `${HOST}/heartbeats`, { workflowId, intervalSec: 86_400 });
  },
};

async function recordStarted(stage: Stage, tag: string, path: string, body: object): Promise<void> {
  const api = stage.as('editor');
  const { status, body: made } = await api.post(path, body);
  stage.record(`${tag}: created`, { status, body: made });
  const [run] = await until(
    async (): Promise<Body[]> => (await api.get(`${HOST}/runs?tag=${tag}:${made.id}`)).body.items,
    (items) => items.length > 0,
  );
  await api.ended(run.runId);
  await recordRun(stage, api, run.runId, { name: tag });
  stage.record(`${tag}: afterwards`, (await api.get(`${path}/${made.id}`)).body);
}

async function recordIdle(stage: Stage, api: Api, path: string, body: object): Promise<void> {
  const { status, body: made } = await api.post(path, body);
  stage.record(`${path}: created`, { status, body: made });
  if (status === 201) stage.record(`${path}: removed`, (await api.request('DELETE', `${path}/${made.id}`)).status);
}

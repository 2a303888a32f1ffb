import type { Answer } from '../../support/api.ts';
import { until } from '../../support/until.ts';
import { expression, node, workflow } from '../definitions.ts';
import { recordRun } from '../recorded-run.ts';
import type { Scenario, Stage } from '../scenario.ts';

const COUNTING = workflow(
  'compare-goal',
  [node('work', 'core.identity', { inputs: { iteration: expression('inputs.goal.iteration') } })],
  [],
);
const PLANS = '/v1/host/capstan/goals';

/** A goal that its second run satisfies, one that runs out of iterations, and one that is given up. */
export const goals: Scenario = {
  name: 'goals',
  modes: ['plain', 'conformance'],
  async play(stage) {
    await stage.as('editor').post('/v1/host/capstan/workflows', COUNTING);
    await pursue(stage, { name: 'satisfied', criterion: 'outputs.work.iteration >= 2', runs: 2 });
    await pursue(stage, { name: 'bound exceeded', criterion: 'false', runs: 3 });
    const { body } = await create(stage);
    const path = `/v1/goals/${body.id}`;
    for (const verb of ['pause', 'resume', 'abandon', 'resume']) {
      const { status, body } = await stage.as('editor').post(`${path}/${verb}`);
      stage.record(`given up: ${verb}`, { status, body });
    }
    stage.record('list', (await stage.as('editor').get('/v1/goals')).body);
    stage.record('calibration', (await stage.as('editor').get(`${PLANS}/calibration`)).body);
  },
};

function create(stage: Stage): Promise<Answer> {
  return stage.as('editor').post('/v1/goals', {
    objective: 'Finish the checklist',
    completion: { check: 'host' },
    continuation: { mode: 'manual' },
    bounds: { maxLoopIterations: 3 },
  });
}

interface Pursuit {
  readonly name: string;
  readonly criterion: string;
  readonly runs: number;
}

async function pursue(stage: Stage, { name, criterion, runs }: Pursuit): Promise<void> {
  const api = stage.as('editor');
  const { status, body: goal } = await create(stage);
  stage.record(`${name}: created`, { status, goal });
  const criteria = [{ key: 'done', expression: criterion }];
  const plan = await api.request('PUT', `${PLANS}/${goal.id}/plan`, { workflowId: 'compare-goal', criteria });
  stage.record(`${name}: plan`, { status: plan.status, body: plan.body });
  for (let run = 1; run <= runs; run++) {
    const started = await api.post(`${PLANS}/${goal.id}/runs`);
    stage.record(`${name}: run ${run} started`, { status: started.status, body: started.body });
    const judged = await until(
      async () => (await api.get(`/v1/goals/${goal.id}`)).body,
      ({ progress }) => progress.iterations >= run,
    );
    stage.record(`${name}: after run ${run}`, judged);
    await recordRun(stage, api, started.body.runId, { name: `${name}: run ${run}` });
  }
  const { body: evaluations } = await api.get(`${PLANS}/${goal.id}/evaluations`);
  stage.record(`${name}: evaluations`, evaluations);
  stage.record(`${name}: log`, await api.events(evaluations.managementRunId));
}

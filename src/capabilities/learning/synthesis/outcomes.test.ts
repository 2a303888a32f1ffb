import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import { RunService } from '../../running/runs/service.ts';
import { Outcomes } from './outcomes.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const work = workflow([node('a')]);
await registerShared(runtime, work);
const runs = new RunService(host, { models: [] });

interface RunCosts {
  readonly usd?: number;
  readonly tokens: { input: number; output: number };
}

async function startedRun(): Promise<string> {
  const request = { workflowId: work.id, inputs: {}, configurable: {}, exclusive: false, tags: [] };
  const started = await perform(runtime, () => runs.create(callerAs('ada'), request));
  if (isRefusal(started)) throw new Error(started.message);
  return started.runId;
}

it('has the counted cost of every run, however many there are, and none where a price is not known', async () => {
  const runIds: string[] = [];
  while (runIds.length < 30) runIds.push(await startedRun());
  const tokens = { input: 1, output: 1 };
  // The first asked no model, and a call of the last has no price.
  const counted = runIds.slice(1).map((runId, index) => [runId, { usd: index < 19 ? 1 : 4, tokens }] as const);
  const costs = { of: async () => new Map<string, RunCosts>([...counted, [runIds[29]!, { tokens }]]) };
  const outcomes = new Outcomes(runtime, 'alpha', { feedback: undefined, costs });
  expect(await outcomes.costs(runIds)).toEqual([0, ...Array(19).fill(1), ...Array(9).fill(4)]);
  expect(await outcomes.summary(runIds)).toMatchObject({ runs: 30, meanCostUsd: 1.896552 });
});

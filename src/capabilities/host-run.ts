import type { Refusal } from '../protocol/errors.ts';
import { type CreatedRun, createRun, type NewRun } from '../runtime/creation.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Runs } from './running/runs/door.ts';

/** Creates a run that the host starts by itself on behalf of a subject, unless its workflow does not take what it is given. */
export async function createHostRun(
  runtime: Runtime,
  runs: Pick<Runs, 'check'>,
  request: Omit<NewRun, 'depth'>,
): Promise<CreatedRun | Refusal> {
  const { inputs, configurable, workflow } = request;
  const refusal = await runs.check({ isTest: false }, { inputs, configurable }, workflow.plan);
  return refusal ?? createRun(runtime, { ...request, depth: 0 });
}

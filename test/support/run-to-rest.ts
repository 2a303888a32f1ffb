import type { Caller } from '../../src/capabilities/request.ts';
import type { RunCreation } from '../../src/capabilities/running/runs/door.ts';
import { RunService } from '../../src/capabilities/running/runs/service.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { perform } from '../../src/runtime/change.ts';
import { type CapabilityHost, callerAs } from './capability-host.ts';

/** Starts a run, waits until it has ended or waits for something, and gives its id. */
export async function runToRest(
  host: CapabilityHost,
  request: Pick<RunCreation, 'workflowId'> & Partial<RunCreation>,
  caller: Caller = callerAs('ada'),
): Promise<string> {
  const runs = new RunService(host, { models: [] });
  const whole = { inputs: {}, configurable: {}, exclusive: false, ...request };
  const started = await perform(host.runtime, () => runs.create(caller, whole));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId, caller.subject.tenant);
  return started.runId;
}

import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { fixed, node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import { EventService } from '../events/service.ts';
import { RunService } from '../runs/service.ts';
import { CallService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());

const { runtime, clock } = host;
const needs = { runs: new RunService(host, { models: [] }), events: new EventService(runtime) };
const ada = callerAs('ada');
const WAIT_MS = 30_000;
const waiting = { signal: new AbortController().signal };
const quick = workflow([node('a')]);
// Its node has not answered at once before, so its runs are stored before they end.
const other = workflow([node('a', 'core.openwop.data.string-format', { inputs: { template: fixed('done') } })]);
for (const definition of [quick, other]) await registerShared(runtime, definition);

async function called(calls: CallService, workflowId = quick.id): Promise<string> {
  const started = await perform(runtime, () => calls.start(ada, { workflowId }, undefined));
  if (isRefusal(started)) throw new Error(started.message);
  return started.runId;
}

describe('the result of a call', () => {
  it('is heard from the commit, without a look at the log', async () => {
    const calls = new CallService(runtime, { ...needs, events: { poll: () => Promise.reject(new Error('a look')) } });
    host.onAppend.push(calls.onAppend);
    const runId = await called(calls);
    const result = calls.result(ada, runId, WAIT_MS, waiting);
    await host.runToRest(runId);
    expect(await result).toEqual({ status: 'completed', outputs: expect.any(Object) });
  });

  it('is heard by a call and its retry, which wait side by side', async () => {
    const calls = new CallService(runtime, { ...needs, events: { poll: () => Promise.reject(new Error('a look')) } });
    host.onAppend.push(calls.onAppend);
    const runId = await called(calls, other.id);
    const results = [calls.result(ada, runId, WAIT_MS, waiting), calls.result(ada, runId, WAIT_MS, waiting)];
    await host.runToRest(runId);
    expect((await Promise.all(results)).map((result) => result?.status)).toEqual(['completed', 'completed']);
  });

  it('is read from the log if nothing is heard, because another host has the run', async () => {
    const calls = new CallService(runtime, needs);
    const runId = await called(calls);
    await host.runToRest(runId);
    const result = calls.result(ada, runId, WAIT_MS, waiting);
    clock.advance(1_000);
    expect(await result).toMatchObject({ status: 'completed' });
  });

  it('is none for a run that is gone', async () => {
    const calls = new CallService(runtime, needs);
    expect(await calls.result(ada, 'run-none', WAIT_MS, waiting)).toBeUndefined();
  });
});

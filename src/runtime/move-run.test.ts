import { afterAll, expect, it } from 'vitest';
import { node, workflow } from '../../test/support/definitions.ts';
import { registerShared } from '../../test/support/register-shared.ts';
import { callerOf, openServiceHost } from '../../test/support/service-host.ts';
import { makePlan } from '../engine/definition/plan.ts';
import { statusOf } from '../engine/run/run.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import type { WorkItem } from '../store/queue.ts';
import type { Store } from '../store/store.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { createRun } from './creation.ts';
import { cancelChildHandler } from './move-run.ts';
import type { NodeType } from './node-type.ts';
import { startRun } from './start-run.ts';

const idle: NodeType = {
  typeId: 'test.idle',
  description: 'For tests.',
  role: 'pure',
  run: () => ({ done: { outputs: {} } }),
};
const { host, store, close } = await openServiceHost({ nodes: [idle] });
const { runtime } = host;
afterAll(close);

it('tries again to cancel a child that keeps moving', async () => {
  const { subject } = callerOf('alpha');
  const definition = workflow([node('a', idle.typeId)]);
  await registerShared(runtime, definition);
  const created = createRun(runtime, {
    subject,
    workflow: { owner: HOST_OWNER, plan: makePlan(definition, 1) },
    inputs: {},
    configurable: {},
    depth: 0,
  });
  const { runId } = created.held.run.facts;
  await store.commit(startRun(runtime, created, 'undriven').writes);
  let tries = 0;
  const commit: Store['commit'] = async () => {
    tries++;
    return { committed: false, failedExpectation: 'sequence' };
  };
  const contended = { ...runtime, store: { ...store, commit } };
  const payload = JSON.stringify({ childRunId: runId, parentRunId: 'run-parent' });
  const item = { tenant: subject.tenant, payload } as unknown as WorkItem;
  const status = () => runtime.reader.view(subject, runId, ({ run }) => statusOf(run));
  await expect(cancelChildHandler(contended)(item)).rejects.toBeInstanceOf(TemporaryFailure);
  expect(tries).toBeGreaterThan(1);
  expect(await status()).not.toBe('cancelled');
  expect(await cancelChildHandler(runtime)(item)).toEqual({});
  expect(await status()).toBe('cancelled');
});

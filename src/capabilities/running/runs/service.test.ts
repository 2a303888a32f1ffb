import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { line, node, unique, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import { openManagementRun } from '../../../runtime/management.ts';
import type { RunCreation } from './door.ts';
import { RunService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());

const { runtime } = host;
const runs = new RunService(host, { models: [] });
const ada = callerAs('ada');
const waiting = workflow([node('a', 'core.delay', { config: { delayMs: 60_000 } }), node('b')], line('a', 'b'));
await registerShared(runtime, waiting);

const request = (more: Partial<RunCreation> = {}): RunCreation => ({
  workflowId: waiting.id,
  inputs: {},
  configurable: {},
  exclusive: false,
  ...more,
});

async function started(more: Partial<RunCreation> = {}): Promise<string> {
  const outcome = await perform(runtime, () => runs.create(ada, request(more)));
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome.runId;
}

describe('creating a run', () => {
  it('writes nothing before it is performed', async () => {
    const change = await runs.create(ada, request());
    if (isRefusal(change)) throw new Error(change.message);
    expect(await runs.row(ada, change.result.runId)).toBeUndefined();
    await perform(runtime, async () => change);
    expect(await runs.row(ada, change.result.runId)).toMatchObject({ workflow_id: waiting.id });
  });

  it('refuses a second live run with an exclusive scope, and names the first', async () => {
    const scopeId = unique('scope');
    const first = await started({ scopeId, exclusive: true });
    const second = await perform(runtime, () => runs.create(ada, request({ scopeId, exclusive: true })));
    expect(second).toMatchObject({ refused: 'run_already_active', details: { activeRunId: first } });
    await perform(runtime, () => runs.cancel(ada, first));
    expect(isRefusal(await perform(runtime, () => runs.create(ada, request({ scopeId, exclusive: true }))))).toBe(
      false,
    );
  });

  it.each<[string, Partial<RunCreation>, string]>([
    ['an unknown workflow', { workflowId: 'no-such' }, 'not_found'],
    ['a mock provider from a live key', { configurable: { mockProvider: { id: 'x' } } }, 'mock_provider_forbidden'],
    ['a forced engine version from a live key', { engineVersion: 0 }, 'force_engine_version_forbidden'],
    ['large metadata', { metadata: { text: 'x'.repeat(60_000) } }, 'validation_error'],
  ])('refuses %s', async (_what, more, refused) => {
    expect(await runs.create(ada, request(more))).toMatchObject({ refused });
  });
});

describe('moving a run', () => {
  it('decides again when another move commits first', async () => {
    const runId = await started();
    await host.runToRest(runId);
    let decisions = 0;
    const outcome = await perform(runtime, async () => {
      const change = await runs.cancel(ada, runId);
      if (++decisions === 1) await perform(runtime, () => runs.pause(ada, runId, { drainPolicy: 'immediate' }));
      return change;
    });
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ status: 'cancelled' });
  });

  it('leaves the status of a run that has ended as it is', async () => {
    const runId = await started();
    await perform(runtime, () => runs.cancel(ada, runId));
    expect(await perform(runtime, () => runs.cancel(ada, runId))).toEqual({ status: 'cancelled' });
    expect(await runs.resume(ada, runId)).toMatchObject({ refused: 'run_terminal' });
  });

  it('is refused for a management run', async () => {
    const inputs = { goalId: 'goal-1' };
    const open = () => openManagementRun(runtime, { workflowId: 'capstan-goal', subject: ada.subject, inputs }, []);
    const run = await perform(runtime, open);
    if (isRefusal(run)) throw new Error(run.message);
    expect(await runs.cancel(ada, run.runId)).toMatchObject({ refused: 'conflict' });
    expect(await runs.pause(ada, run.runId, { drainPolicy: 'immediate' })).toMatchObject({ refused: 'conflict' });
  });

  it('is refused with 404 for a run of another tenant', async () => {
    const runId = await started();
    const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
    expect(await runs.cancel(stranger, runId)).toMatchObject({ refused: 'not_found' });
    expect(await runs.snapshot(stranger, runId)).toMatchObject({ refused: 'not_found' });
  });
});

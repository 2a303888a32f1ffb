import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { fixed, line, node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import { type Change, changeOf, perform } from '../../../runtime/change.ts';
import type { AuditRecord } from '../../trust/audit/door.ts';
import { RunService } from '../runs/service.ts';
import { TimeTravelService } from '../time-travel/service.ts';
import type { ForkOptions } from './rules.ts';
import { ReplayService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());

const { runtime } = host;
const audited: AuditRecord[] = [];
const audit = {
  entry: (record: AuditRecord): Change => changeOf(undefined, [], { announce: [() => audited.push(record)] }),
};
const runs = new RunService(host, { models: [] });
const EXPIRED = refuse('run_expired', 'The run has expired.');
const retention = { expiry: async (_from: unknown, runId: string) => (runId === 'run-old' ? EXPIRED : undefined) };
const replay = new ReplayService(host, { runs, audit, retention });
const timeTravel = new TimeTravelService(runtime);
const ada = callerAs('ada');
const work = workflow([node('a', 'core.identity', { inputs: { value: fixed(1) } }), node('b')], line('a', 'b'), {
  variables: [{ name: 'count', type: 'number', required: false }] as never,
});
await registerShared(runtime, work);

async function endedRun(): Promise<string> {
  const request = { workflowId: work.id, inputs: { count: 1 }, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(ada, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return started.runId;
}

const fork = (sourceRunId: string, options: Partial<ForkOptions> = {}) =>
  perform(runtime, () => replay.fork(ada, sourceRunId, { mode: 'replay', fromSeq: 0, overlay: {}, ...options }));

describe('a fork', () => {
  it('is a run of its own, with an audit entry of the same unit', async () => {
    const source = await endedRun();
    const forked = await fork(source);
    if (isRefusal(forked)) throw new Error(forked.message);
    await host.runToRest(forked.runId);
    expect(await runs.snapshot(ada, forked.runId)).toMatchObject({ status: 'completed' });
    expect(audited.at(-1)).toMatchObject({
      action: 'run.fork',
      target: source,
      details: { runId: forked.runId, mode: 'replay', fromSeq: 0 },
    });
  });

  it.each<[string, Partial<ForkOptions>, object]>([
    ['after the end of the log', { fromSeq: 1_000 }, { refused: 'validation_error', status: 422 }],
    [
      'of an unknown version',
      { mode: 'branch', overlay: { workflowVersion: 99 } },
      { details: { field: 'runOptionsOverlay.workflowVersion' } },
    ],
    [
      'with inputs that the workflow does not take',
      { mode: 'branch', overlay: { inputs: { count: 'one' } } },
      { details: { field: 'inputs.count' } },
    ],
  ])('%s is refused', async (_what, options, refusal) => {
    expect(await fork(await endedRun(), options)).toMatchObject(refusal);
  });

  it('of a run that has expired is told apart from one of a run that never was', async () => {
    expect(await fork('run-old')).toMatchObject({ refused: 'run_expired', details: { sourceRunId: 'run-old' } });
    expect(await fork('run-none')).toMatchObject({ refused: 'not_found' });
  });
});

describe('time travel', () => {
  it('shows a run as it was after each event', async () => {
    const runId = await endedRun();
    const row = (await runs.row(ada, runId))!;
    expect(await timeTravel.stateAfter(ada, runId, row.sequence)).toMatchObject({ status: 'completed' });
    expect(await timeTravel.stateAfter(ada, runId, 0)).not.toMatchObject({ status: 'completed' });
    expect(await timeTravel.stateAfter(ada, runId, row.sequence + 1)).toMatchObject({ status: 422 });
  });
});

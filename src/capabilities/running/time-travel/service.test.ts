import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { line, node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import { LOG_PAGE } from '../../log-pages.ts';
import { RunService } from '../runs/service.ts';
import { TimeTravelService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const ada = callerAs('ada');
const two = workflow([node('a'), node('b')], line('a', 'b'));
const ids = Array.from({ length: LOG_PAGE }, (_, index) => `n${index}`);
const long = workflow(
  ids.map((id) => node(id)),
  line(...ids),
);
await registerShared(runtime, two, long);
const timeTravel = new TimeTravelService(runtime);
const runs = new RunService(host, { models: [] });

async function stateAfter(runId: string, sequence: number): Promise<RunSnapshot> {
  const found = await timeTravel.stateAfter(ada, runId, sequence);
  if (isRefusal(found)) throw new Error(found.message);
  return found;
}
const lastOf = async (runId: string): Promise<number> => (await runtime.reader.row(ada.subject, runId))!.sequence;

describe('the state of a run after an event', () => {
  it('is what the events up to then make of it, and nothing later', async () => {
    const runId = await runToRest(host, { workflowId: two.id });
    const last = await lastOf(runId);
    const statuses = new Set<string>();
    let settled = 0;
    for (let sequence = 0; sequence <= last; sequence++) {
      const { status, nodeStates = {} } = await stateAfter(runId, sequence);
      statuses.add(status);
      const count = Object.values(nodeStates).filter((state) => state.status === 'completed').length;
      expect(count).toBeGreaterThanOrEqual(settled);
      settled = count;
    }
    expect(settled).toBe(2);
    expect([...statuses]).toEqual(['running', 'completed']);
  });

  it('is the present one after the last event, also of a log of several pages', async () => {
    const runId = await runToRest(host, { workflowId: long.id });
    const last = await lastOf(runId);
    expect(last).toBeGreaterThan(2 * LOG_PAGE);
    expect(await stateAfter(runId, last)).toEqual(await runs.snapshot(ada, runId));
    expect(await stateAfter(runId, LOG_PAGE)).toMatchObject({ status: 'running' });
  });

  it('is refused beyond the last event, which is named', async () => {
    const runId = await runToRest(host, { workflowId: two.id });
    const lastSequence = await lastOf(runId);
    expect(await timeTravel.stateAfter(ada, runId, lastSequence + 1)).toMatchObject({
      refused: 'validation_error',
      status: 422,
      details: { field: 'sequence', lastSequence },
    });
  });

  it('is not told to another tenant, nor of a run that is not there', async () => {
    const runId = await runToRest(host, { workflowId: two.id });
    const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
    expect(await timeTravel.stateAfter(stranger, runId, 0)).toMatchObject({ refused: 'not_found' });
    expect(await timeTravel.stateAfter(ada, 'run-none', 0)).toMatchObject({ refused: 'not_found' });
  });
});

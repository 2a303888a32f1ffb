import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { TRIAL_TAG, type TrialRequest } from '../../../protocol/running/trials.ts';
import { perform, unchanged } from '../../../runtime/change.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import { deleteDefinitionOf } from '../../../store/definitions.ts';
import { sql } from '../../../store/sql.ts';
import { RunService } from '../runs/service.ts';
import { WorkflowService } from '../workflows/service.ts';
import { TrialService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const ada = callerAs('ada');
const runs = new RunService(host, { models: [] });
const workflows = new WorkflowService(host, { audit: { entry: () => unchanged(undefined) } });
const trials = new TrialService(runtime, { runs, workflows });

async function tried(request: TrialRequest) {
  const started = await perform(runtime, () => trials.start(ada, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  const snapshot = await runs.snapshot(ada, started.runId);
  if (isRefusal(snapshot)) throw new Error(snapshot.message);
  return snapshot;
}
const definitions = (): Promise<{ owner: string }[]> =>
  runtime.store.read(sql(`SELECT owner FROM definitions WHERE workflow_id LIKE 'capstan-trial-%'`));

describe('a trial', () => {
  it('runs one node with the values of its ports, whatever their types', async () => {
    const inputs = { text: 'a', count: 1, flag: false, list: [1, 'b'], object: { c: {} }, nothing: null };
    const { status, nodeStates } = await tried({ typeId: 'core.identity', inputs });
    expect(status).toBe('completed');
    expect(nodeStates!.node!.outputs).toEqual(inputs);
  });

  it('has a tag, so that figures and learning leave it out', async () => {
    const { runId } = await tried({ typeId: 'core.noop' });
    expect(factsOf((await runtime.reader.row(ada.subject, runId))!).tags).toEqual([TRIAL_TAG]);
  });

  it('is of the same workflow if it is the same, whatever its values', async () => {
    const ofA = await tried({ typeId: 'core.identity', inputs: { text: 'a' } });
    const ofB = await tried({ typeId: 'core.identity', inputs: { text: 'b' } });
    const other = await tried({ typeId: 'core.identity', inputs: { text: 1 } });
    expect(ofB.workflowId).toBe(ofA.workflowId);
    expect(other.workflowId, 'another type').not.toBe(ofA.workflowId);
  });

  it('is no workflow: nobody can start it, and its definition goes with its run', async () => {
    const { runId, workflowId } = await tried({ typeId: 'core.noop' });
    expect(await runtime.plans.current(ada.subject, workflowId)).toBeUndefined();
    const before = (await definitions()).length;
    await runtime.store.commit([deleteDefinitionOf({ tenant: 'alpha', runId }, 'trial')]);
    expect(await definitions()).toHaveLength(before - 1);
  });

  it('is refused for an unknown type or a config that does not fit, and then nothing is stored', async () => {
    const before = await definitions();
    for (const request of [{ typeId: 'core.none' }, { typeId: 'core.delay', config: { delayMs: 'soon' } }]) {
      const refused = await perform(runtime, () => trials.start(ada, request));
      expect(isRefusal(refused), request.typeId).toBe(true);
    }
    expect(await definitions()).toEqual(before);
  });
});

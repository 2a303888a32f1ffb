import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { childRuns, type ListedRun } from '../../../store/log.ts';
import { ANCESTRY_TABLES } from './records.ts';
import { AncestryService } from './service.ts';

const host = await openCapabilityHost({ tables: ANCESTRY_TABLES });
afterAll(() => host.close());
const { runtime } = host;
const ada = callerAs('ada');
const child = workflow([node('a')]);
const parent = workflow([node('sub', 'core.subWorkflow', { config: { workflowId: child.id } })]);
await registerShared(runtime, child, parent);
const ancestry = new AncestryService(runtime);
await ancestry.loadHostId();

async function family(): Promise<{ parentId: string; childId: string }> {
  const parentId = await runToRest(host, { workflowId: parent.id });
  const [run] = await runtime.store.read<ListedRun>(childRuns({ tenant: 'alpha', runId: parentId }));
  return { parentId, childId: run!.run_id };
}

describe('the ancestry of a run', () => {
  it('is the run that started it, and the type of the node that did', async () => {
    const { parentId, childId } = await family();
    const { hostId } = ancestry;
    expect(await ancestry.ancestryOf(ada, childId)).toEqual({
      runId: childId,
      hostId,
      parent: { runId: parentId, hostId, cause: 'core.subWorkflow' },
    });
    expect(await ancestry.ancestryOf(ada, parentId)).toEqual({ runId: parentId, hostId, parent: null });
  });

  it('names a parent that has expired', async () => {
    const { parentId, childId } = await family();
    await runtime.store.commit([{ sql: 'DELETE FROM runs WHERE run_id = $1', params: [parentId] }]);
    expect(await ancestry.ancestryOf(ada, childId)).toMatchObject({
      parent: { runId: parentId, cause: 'core.subWorkflow' },
    });
  });

  it('is not told to another tenant, nor of a run that is not there', async () => {
    const { childId } = await family();
    const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
    expect(await ancestry.ancestryOf(stranger, childId)).toMatchObject({ refused: 'not_found' });
    expect(await ancestry.ancestryOf(ada, 'run-none')).toMatchObject({ refused: 'not_found' });
  });
});

it('the id of the installation is the same for every host of a store', async () => {
  const other = new AncestryService(runtime);
  await other.loadHostId();
  expect(other.hostId).toBe(ancestry.hostId);
  expect(other.hostId).toMatch(/^capstan-/);
});

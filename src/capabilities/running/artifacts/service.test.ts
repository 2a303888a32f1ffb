import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { fixed, node, variable, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import { storeArtifacts } from './reactions.ts';
import { ARTIFACT_TABLES, forgetArtifacts } from './records.ts';
import { ArtifactService } from './service.ts';

const host = await openCapabilityHost({ tables: ARTIFACT_TABLES, reactions: [storeArtifacts] });
afterAll(() => host.close());
const { runtime } = host;
const ada = callerAs('ada');
const writing = workflow(
  [
    node('write', 'core.identity', { inputs: { text: fixed('Dear all'), to: variable('to') }, artifactType: 'letter' }),
    node('plain', 'core.identity', { inputs: { text: fixed('no artifact') } }),
  ],
  [],
  { variables: [{ name: 'to', type: 'string', sensitive: true }] },
);
await registerShared(runtime, writing);
const artifacts = new ArtifactService(runtime);

const written = (): Promise<string> => runToRest(host, { workflowId: writing.id, inputs: { to: 'Zebedee' } });

describe('an artifact', () => {
  it('is what a node with an artifact type resulted in, sensitive values masked', async () => {
    const runId = await written();
    const found = JSON.parse((await artifacts.find(ada, runId, 'art-0'))!);
    expect(found).toMatchObject({ artifactId: 'art-0', artifactType: 'letter', runId, nodeId: 'write' });
    expect(found.data).toMatchObject({ text: 'Dear all' });
    expect(JSON.stringify(found)).not.toContain('Zebedee');
  });

  it('is none of a node without an artifact type, of another run, or of a run that is not there', async () => {
    const runId = await written();
    expect(await artifacts.find(ada, runId, 'art-1')).toBeUndefined();
    expect(await artifacts.find(ada, 'run-none', 'art-0')).toBeUndefined();
  });

  it('is shown to those alone who may see the run', async () => {
    const runId = await runToRest(
      host,
      { workflowId: writing.id, inputs: { to: 'Zebedee' } },
      { ...ada, subject: { ...ada.subject, workspace: 'team' } },
    );
    const as = (more: object) => ({ ...ada, subject: { ...ada.subject, ...more } });
    expect(await artifacts.find(as({ tenant: 'beta' }), runId, 'art-0')).toBeUndefined();
    expect(await artifacts.find(as({ workspace: 'other' }), runId, 'art-0')).toBeUndefined();
    expect(await artifacts.find(as({ workspace: 'team' }), runId, 'art-0')).toBeDefined();
  });

  it('is gone once its run is forgotten, and only for the tenant that forgets it', async () => {
    const runId = await written();
    await commitOrThrow(runtime.store, [forgetArtifacts({ tenant: 'beta', runId })]);
    expect(await artifacts.find(ada, runId, 'art-0')).toBeDefined();
    await commitOrThrow(runtime.store, [forgetArtifacts({ tenant: 'alpha', runId })]);
    expect(await artifacts.find(ada, runId, 'art-0')).toBeUndefined();
  });
});

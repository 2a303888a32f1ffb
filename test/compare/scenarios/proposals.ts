import type { Answer, Api } from '../../support/api.ts';
import { fixed, line, node, workflow } from '../definitions.ts';
import { recordRun } from '../recorded-run.ts';
import type { Scenario, Stage } from '../scenario.ts';

const PROPOSALS = '/v1/proposals';
const INSTALLED = '/v1/host/capstan/artifacts/installed';
const brief = ({ status, body }: Answer): object => ({ status, body });

/** Three steps that two workflows have in common, after one of their own. */
function greeting(id: string, value: string, before: string): object {
  return workflow(
    id,
    [
      node('first', before),
      node('take', 'core.identity', { inputs: { name: fixed('Ada') } }),
      node('say', 'core.setVariable', { config: { name: 'said', value } }),
      node('look', 'core.getVariable', { config: { name: 'said' } }),
    ],
    line('first', 'take', 'say', 'look'),
  );
}

/**
 * A proposal that is synthesized from runs, revised, applied and uninstalled. In a plain host somebody else has to agree
 * to it, because the reviewer has revised it.
 */
export const proposals: Scenario = {
  name: 'proposals',
  modes: ['plain', 'conformance'],
  async play(stage) {
    const editor = stage.as('editor');
    await makeHistory(editor);
    const synthesized = await editor.post('/v1/host/capstan/proposals:synthesize', { kinds: ['workflow-chain-pack'] });
    stage.record('synthesized', brief(synthesized));
    const proposal = synthesized.body.created[0];
    const path = `${PROPOSALS}/${proposal.id}`;
    const revision = { artifact: proposal.artifact, note: 'as is' };
    stage.record('revised', brief(await stage.as('reviewer').request('PATCH', path, revision)));
    stage.record('applied by an editor', brief(await editor.post(`${path}/apply`)));
    await apply(stage, proposal.id);
    stage.record('list', (await editor.get(PROPOSALS)).body);
    stage.record('synthesized again', brief(await editor.post('/v1/host/capstan/proposals:synthesize', {})));
  },
};

async function makeHistory(api: Api): Promise<void> {
  await api.post('/v1/host/capstan/workflows', greeting('compare-greeting', 'Dear you', 'core.start'));
  await api.post('/v1/host/capstan/workflows', greeting('compare-hello', 'Hello', 'core.noop'));
  for (const id of ['compare-greeting', 'compare-greeting', 'compare-hello']) await api.ended(await api.run(id));
}

async function apply(stage: Stage, proposalId: string): Promise<void> {
  const reviewer = stage.as('reviewer');
  const path = `${PROPOSALS}/${proposalId}`;
  stage.record('apply', brief(await reviewer.post(`${path}/apply`)));
  const { body: evidence } = await reviewer.get(`/v1/host/capstan/proposals/${proposalId}/evidence`);
  stage.record('evidence', evidence);
  if (evidence.gate) {
    const resumeValue = { decision: 'granted', artifactHash: evidence.artifactHash };
    const interrupt = `/v1/runs/${evidence.runId}/interrupts/review`;
    stage.record('granted', brief(await stage.as('second').post(interrupt, { resumeValue })));
  }
  const { body: applied } = await reviewer.get(path);
  stage.record('proposal', applied);
  stage.record('installed', (await reviewer.get(INSTALLED)).body);
  await recordRun(stage, reviewer, evidence.runId, { name: 'log' });
  const ref = applied.activation?.installedArtifactRef;
  stage.record('uninstalled', brief(await reviewer.request('DELETE', `${INSTALLED}/${ref}`)));
  stage.record('archived', brief(await stage.as('editor').request('DELETE', path)));
}

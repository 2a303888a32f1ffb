import { afterAll, expect, it } from 'vitest';
import { callerOf, openServiceHost } from '../../../../../test/support/service-host.ts';
import { isRefusal } from '../../../../protocol/errors.ts';
import { rubricTag, type VerifierRequest } from '../../../../protocol/learning/verifiers.ts';
import { changeOf, type Decide, perform } from '../../../../runtime/change.ts';
import type { Prompts } from '../../../ai/prompts/door.ts';
import { VERIFIER_TABLES } from '../../verifiers/records.ts';
import { VerifierService } from '../../verifiers/service.ts';
import { templateInstaller } from './rubric.ts';

const opened = await openServiceHost({ tables: VERIFIER_TABLES });
const { runtime } = opened.host;
afterAll(opened.close);
const verifiers = new VerifierService(opened.host, {
  audit: { record: () => [] },
  costs: { countOutside: () => changeOf(undefined, []) },
  models: { seam: async () => ({ chunks: [] }) },
  runs: { check: async () => undefined },
  feedback: undefined,
  judgeModel: undefined,
});
const installer = templateInstaller({ check: () => undefined } as unknown as Prompts, verifiers);

const tenant = callerOf('alpha');
const workspace = callerOf('alpha', 'docs');
const rubric = (text: string): VerifierRequest => ({ id: 'tone', kind: 'model', rubric: text });
const artifact = (text: string) => ({
  proposalId: 'prop-1',
  author: workspace,
  text: JSON.stringify({ templateId: 'tone', kind: 'system', text, tags: [rubricTag('tone')] }),
});

async function done<T>(decide: Decide<T>): Promise<T> {
  const outcome = await perform(runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
}

it('a rubric that shadowed the one of the tenant gives way to it again', async () => {
  await done(() => verifiers.put(tenant, rubric('Of everybody.')));
  await done(() => verifiers.put(workspace, rubric('Ours, long removed.')));
  await done(() => verifiers.remove(workspace, 'tone'));
  const { undo, replaces } = await done(() => installer.install(artifact('Ours.')));
  expect(replaces).toBe('verifier:tone@1');
  expect(await verifiers.get(workspace, 'tone')).toMatchObject({ version: 2, rubric: 'Ours.' });
  await done(() => installer.uninstall(workspace, undo));
  expect(await verifiers.get(workspace, 'tone')).toMatchObject({ version: 1, rubric: 'Of everybody.' });
});

it('a rubric that replaced one of the same workspace gives way to that', async () => {
  await done(() => verifiers.put(workspace, rubric('Ours.')));
  const { undo } = await done(() => installer.install(artifact('Ours, sharper.')));
  await done(() => installer.uninstall(workspace, undo));
  expect(await verifiers.get(workspace, 'tone')).toMatchObject({ rubric: 'Ours.' });
});

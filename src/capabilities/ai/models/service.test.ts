import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { scriptedModel } from '../../../../test/support/scripted-model.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import type { Firing } from '../../../runtime/effects/firing.ts';
import type { ModelProvider } from '../../../runtime/effects/model.ts';
import { ModelProviders } from './door.ts';
import { ModelService } from './service.ts';

const contributed: ModelProvider = {
  id: 'extra',
  models: ['extra-1'],
  prices: {},
  isByNameOnly: true,
  answer: async () => ({ chunks: [{ text: 'from extra', delayMs: 0, meta: {} }] }),
};
const { host, close } = await openServiceHost({ extensions: [ModelProviders.of(contributed)] });
const folder = freshFolder();
afterAll(async () => {
  folder.remove();
  await close();
});

const scripted = scriptedModel(folder.path, { answers: [{ content: 'from the script' }] });
const firing = { tenant: 'alpha', signal: new AbortController().signal } as Firing;
const textOf = async (models: ModelService, provider?: string): Promise<string> =>
  (await models.seam({ provider, messages: [] }, firing)).chunks.map(({ text }) => text).join('');

describe('the model providers of a host', () => {
  it('are those that are configured, then those that capabilities contribute', async () => {
    const models = new ModelService(host, [scripted]);
    expect(models.providers.map(({ id }) => id)).toEqual(['extra']);
    await models.prepare();
    expect(models.providers.map(({ id }) => id)).toEqual(['play', 'extra']);
    expect(await textOf(models)).toBe('from the script');
    expect(await textOf(models, 'extra')).toBe('from extra');
  });

  it('never default to one that must be named', async () => {
    await expect(textOf(new ModelService(host, []))).rejects.toMatchObject({
      error: { code: 'capability_not_provided', details: { capability: 'aiProviders' } },
    });
  });

  it('are refused at start if a script cannot be read, with its path', async () => {
    const missing = new ModelService(host, [{ ...scripted, script: '/nowhere/script.json' }]);
    await expect(missing.prepare()).rejects.toThrow('/nowhere/script.json');
  });
});

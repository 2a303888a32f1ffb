import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

  it.each([
    [
      'does not exist',
      undefined,
      / does not exist: there is no file .*\/other\.json\. Create it, or correct `script`\.$/,
    ],
    ['is not JSON', '{ "answers": [', / cannot be used: no valid JSON from line 1, column 15 on\.$/],
    ['has no answers', '{ "answers": [] }', / cannot be used: \/answers .*\.$/],
  ])('are refused at start if a script %s, with the setting and the provider', async (_what, text, problem) => {
    const script = join(folder.path, 'other.json');
    if (text !== undefined) writeFileSync(script, text);
    const error = await new ModelService(host, [{ ...scripted, script }]).prepare().catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ message: expect.stringMatching(problem) });
    expect(error).toMatchObject({ message: expect.stringContaining('CAPSTAN_MODELS: the script ') });
    expect(error).toMatchObject({ message: expect.stringContaining(' of provider play ') });
  });
});

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, PAYLOADS, unexpected } from '../support/console.ts';
import { fixed, node, register, unique, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { ModelServer } from '../support/model-server.ts';
import { shootBoth } from '../support/screenshots.ts';

/** Prompts and single nodes, tried in a real browser against a real host. The model repeats what it is asked. */

describe('the playground', () => {
  let host: TestHost;
  let browser: Browser;
  let server: ModelServer;
  beforeAll(async () => {
    server = await ModelServer.open();
    server.on('echo', ({ body }, speech) => speech.text(`You said: ${body.messages.at(-1).content}`).end());
    const models = [
      {
        provider: 'acme',
        kind: 'openai-compatible' as const,
        baseUrl: server.url,
        models: ['echo'],
        prices: { echo: { input: 1, output: 2 } },
        timeoutMs: 20_000,
      },
    ];
    [host, browser] = await Promise.all([
      startTestHost('sqlite', undefined, { models, conformance: false, allowLoopback: true }),
      launchBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
    server?.close();
  });

  const open = (key: string, rest: string, options = {}) =>
    enter(browser, host.url, key, rest, { locale: 'en-US', ...options });
  const prompt = async (text: string, more: object = {}): Promise<string> => {
    const templateId = unique('prompt');
    await host.as('editor').post('/v1/prompts', { templateId, version: '1.0.0', kind: 'user', text, ...more });
    return templateId;
  };

  it('a prompt is written, tried, saved, changed, and compared with what it was', async () => {
    const visited = await open(KEYS.editor.key, 'operations?section=prompts');
    const { page } = visited;
    const templateId = unique('greeting');
    await page.getByRole('button', { name: 'New prompt' }).click();
    await page.getByLabel('Id', { exact: true }).fill('Not an id');
    await page.getByLabel('Prompt', { exact: true }).fill('Hello {{name}}');
    await page.getByRole('button', { name: 'Save as 1.0.0' }).click();
    await page.locator('input[aria-invalid]').waitFor();
    await page.getByLabel('Id', { exact: true }).fill(templateId);
    await page.getByLabel('name', { exact: true }).fill('Ada');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByText('You said: Hello Ada').waitFor();
    await page.getByRole('button', { name: 'Save as 1.0.0' }).click();
    await page.waitForURL(/console\/prompts\//);
    await page.getByLabel('Prompt', { exact: true }).fill('Good day {{name}}');
    await page.getByLabel('name', { exact: true }).fill('Ada');
    expect(await page.getByLabel('Compared with version').locator('option').allInnerTexts()).toEqual([
      expect.stringMatching(/^1\.0\.0, /),
    ]);
    await page.getByLabel('Provider').selectOption('acme');
    await page.getByLabel('Model').selectOption('echo');
    await page.getByRole('button', { name: 'Ask both' }).click();
    await page.getByRole('region', { name: 'As it is here' }).getByText('You said: Good day Ada').waitFor();
    await page.getByRole('region', { name: 'Version 1.0.0' }).getByText('You said: Hello Ada').waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Save as 1.0.1' }).click();
    await page.getByText('Version 1.0.1 is saved.').waitFor();
    const { body } = await host.as('editor').get(`/v1/prompts/${templateId}`);
    expect(body).toMatchObject({ version: '1.0.1', text: 'Good day {{name}}' });
    expect(unexpected(visited, /status of 400/)).toEqual([]);
  });

  it('a system prompt is tried with a question', async () => {
    const { page } = await open(KEYS.editor.key, `prompts/${await prompt('Be brief.', { kind: 'system' })}`);
    await page.getByLabel('What is asked').fill('Why?');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByText('You said: Why?').waitFor();
    expect(server.asked('echo').at(-1)!.body.messages).toMatchObject([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Why?' },
    ]);
  });

  it('a viewer reads it, and sees no button that would fail', async () => {
    const visited = await open(KEYS.viewer.key, `prompts/${await prompt('For everybody')}`);
    const { page } = visited;
    await page.getByText('Editors can send it to a model here.').waitFor();
    expect(await page.getByRole('button', { name: /^(?:Ask|Save)/ }).count()).toBe(0);
    expect(unexpected(visited)).toEqual([]);
  });

  it('text is text, whatever is in it', async () => {
    const { page } = await open(KEYS.editor.key, 'runs');
    const payload = PAYLOADS.slice(0, 3).join(' ');
    await page.goto(`${host.url}/console/prompts/${await prompt(payload, { name: payload, description: payload })}`);
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByText(`You said: ${payload}`).waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
  });

  it('a node of a draft is run by itself', async () => {
    const editor = host.as('editor');
    const id = await register(editor, workflow([node('greet', 'core.openwop.data.string-format')]));
    const visited = await open(KEYS.editor.key, `workflows/${id}/edit`);
    const { page } = visited;
    await page.locator('.react-flow__node').first().click();
    await page.getByRole('button', { name: 'Try this node' }).click();
    await page.getByLabel('Inputs').fill('{"template":"Hello {{name}}"');
    await page.getByRole('button', { name: 'Run the node' }).click();
    await page.getByText(/This is not JSON/).waitFor();
    await page.getByLabel('Inputs').fill('{"template":"Hello {{name}}","name":"Ada"}');
    await page.getByRole('button', { name: 'Run the node' }).click();
    await page.getByRole('region', { name: 'Result' }).getByText('Hello Ada').waitFor();
    expect((await editor.get(`/v1/host/capstan/workflows/${id}/versions`)).body.items).toHaveLength(1);
    expect(unexpected(visited)).toEqual([]);
  });

  it('the models and prompts that the host knows are offered where a node takes them', async () => {
    const templateId = await prompt('Answer {{question}}');
    const judge = node('judge', 'vendor.capstan.judge', {
      inputs: { rubric: fixed('Is it kind?') },
      position: { x: 0, y: 200 },
    });
    const id = await register(host.as('editor'), workflow([node('ask', 'core.ai.callPrompt'), judge]));
    const { page } = await open(KEYS.editor.key, `workflows/${id}/edit`);
    await page.locator('.react-flow__node', { hasText: 'ask' }).click();
    const offered = async (label: string) => {
      const field = page.getByLabel(label, { exact: true }).and(page.locator('[list]'));
      const list = await field.getAttribute('list');
      await page.locator(`datalist[id="${list}"] option`).first().waitFor({ state: 'attached' });
      return page
        .locator(`datalist[id="${list}"] option`)
        .evaluateAll((all) => all.map((each) => each.getAttribute('value')));
    };
    expect(await offered('model')).toContain('echo');
    expect(await offered('provider')).toContain('acme');
    expect(await offered('userPromptRef')).toContain(`prompt:${templateId}@1.0.0`);
    await page.locator('.react-flow__node', { hasText: 'judge' }).click();
    await page.getByLabel('userPromptRef').waitFor({ state: 'detached' });
    expect(await offered('model')).toContain('echo');
    expect(await offered('provider')).toContain('acme');
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const path = `prompts/${await prompt('A question about {{topic}}, with a line that is long enough to be wrapped.')}`;
    const { page } = await open(KEYS.editor.key, path);
    await page.getByRole('button', { name: 'Ask', exact: true }).waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(await misfits(page, [390, 1024, 1440])).toEqual([]);
    await shootBoth(page, 'prompt');
  });
});

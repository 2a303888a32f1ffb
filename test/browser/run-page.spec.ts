import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, go, passPoll, passUndo, reloadWithFeed, undo, unexpected } from '../support/console.ts';
import {
  connection,
  edge,
  expression,
  fixed,
  line,
  node,
  register,
  variable,
  workflow,
} from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, eventsOf, governanceGate, waitingRun } from '../support/interrupts.ts';

/** The page of a run: what it waits for, what its nodes got and gave, and what people say about it. */

const WIDTHS = [1440, 1024, 390];

describe('the page of a run', () => {
  let host: TestHost;
  let browser: Browser;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const open = (key: string, rest: string, options = {}) =>
    enter(browser, host.url, key, rest, { locale: 'en-US', ...options });
  const nodePanel = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

  it('asks what the run waits for, and takes the answer', async () => {
    const editor = host.as('editor');
    const gate = approval('ask', { title: 'May we do this?' }, { inputs: { letter: fixed('Dear Ada') } });
    const { runId } = await waitingRun(editor, await register(editor, workflow([gate, node('z')], line('ask', 'z'))));
    const visited = await open(KEYS.editor.key, `runs/${runId}`);
    const { page } = visited;
    const question = page.getByRole('region', { name: 'Question of ask' });
    await question.getByRole('heading', { name: 'May we do this?' }).waitFor();
    await question.getByText('Dear Ada').waitFor();
    expect(await question.getByText('artifactType').count()).toBe(0);
    expect(await barriers(page)).toEqual([]);
    expect(await misfits(page, WIDTHS)).toEqual([]);
    await page.keyboard.press('r');
    await page.keyboard.type('Too short');
    await undo(page, () => page.keyboard.press('Enter'));
    const approve = question.getByRole('button', { name: /^Approve/ });
    await approve.waitFor();
    await passUndo(page, async () => {
      await approve.click();
      await question.getByText('Your answer is being sent').waitFor();
    });
    await page.locator('header [data-state=completed]').waitFor();
    await question.waitFor({ state: 'detached' });
    const [resolved] = await eventsOf(editor, runId, 'interrupt.resolved');
    expect(resolved.payload).toMatchObject({ resumeValue: { action: 'accept' }, resolvedBy: 'editor-of-alpha' });
    expect(unexpected(visited)).toEqual([]);
  });

  it('says who can answer to those who may not', async () => {
    const editor = host.as('editor');
    const gate = governanceGate('boss', { requiredRole: 'owner', title: 'Ship it?' });
    const { runId } = await waitingRun(editor, await register(editor, workflow([gate, approval('any')])));
    const { page } = await open(KEYS.editor.key, `runs/${runId}`);
    await page.getByText('Only the role owner may decide this.').waitFor();
    await page
      .getByRole('region', { name: 'Question of any' })
      .getByRole('button', { name: /^Approve/ })
      .waitFor();
    expect(
      await page
        .getByRole('region', { name: 'Question of boss' })
        .getByRole('button', { name: /^Approve/ })
        .count(),
    ).toBe(0);
    await page
      .getByRole('region', { name: 'Question of any' })
      .getByRole('link', { name: 'Open in the inbox' })
      .click();
    await page.getByRole('region', { name: 'Item' }).getByRole('heading', { name: 'Approve any' }).waitFor();
    const viewer = await open(KEYS.viewer.key, `runs/${runId}`);
    await viewer.page.getByText('which editors and higher roles have').first().waitFor();
  });

  it('leads to the sub-run that waits', async () => {
    const editor = host.as('editor');
    const inner = await register(editor, workflow([approval('ask')]));
    const outer = workflow([node('do', 'core.subWorkflow', { config: { workflowId: inner } })]);
    const { runId } = await waitingRun(editor, await register(editor, outer));
    const { page } = await open(KEYS.editor.key, `runs/${runId}`);
    await page.getByRole('region', { name: 'Waiting sub-runs' }).getByRole('link').click();
    await page.getByRole('region', { name: 'Question of ask' }).waitFor();
  });

  it('corrects what a node gave, and lists it with the feedback', async () => {
    const editor = host.as('editor');
    const draft = node('draft', 'core.identity', {
      inputs: { reply: fixed('Dear customer, no.'), tone: fixed('curt') },
    });
    const runId = await editor.run(await register(editor, workflow([draft])));
    await editor.ended(runId);
    const visited = await open(KEYS.editor.key, `runs/${runId}?node=draft`);
    const { page } = visited;
    await page.getByRole('button', { name: 'Correct draft' }).click();
    const dialog = page.getByRole('dialog');
    const text = dialog.getByLabel('Correct output');
    expect(await text.inputValue()).toBe('Dear customer, no.');
    await dialog.getByRole('button', { name: 'Record the correction' }).click();
    await dialog.getByText('Nothing is changed yet.').waitFor();
    await text.fill('Dear Ada, yes.');
    await dialog.getByLabel('Why (optional)').fill('Too curt');
    expect(await barriers(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Record the correction' }).click();
    await nodePanel(page, 'draft').getByText('Dear Ada, yes.').waitFor();
    await page.getByRole('region', { name: 'Feedback' }).getByRole('link', { name: 'draft' }).waitFor();
    await page.getByRole('button', { name: 'Rate draft 2 of 5' }).click();
    await nodePanel(page, 'draft').getByText('2 of 5').waitFor();
    await page.getByRole('button', { name: 'Label', exact: true }).click();
    await page.getByLabel('A label').fill('wrong-tone');
    await page.keyboard.press('Enter');
    await page.getByText('wrong-tone').waitFor();
    const { annotations } = (await editor.get(`/v1/runs/${runId}/annotations`)).body;
    expect(annotations).toMatchObject([
      {
        signal: { kind: 'correction', correction: 'Dear Ada, yes.' },
        target: { nodeId: 'draft' },
        note: 'Too curt',
      },
      { signal: { kind: 'rating', rating: 2 }, target: { nodeId: 'draft' } },
      { signal: { kind: 'label', label: 'wrong-tone' }, target: { runId } },
    ]);
    expect(annotations[2].target).not.toHaveProperty('nodeId');
    expect(unexpected(visited)).toEqual([]);
  });

  it('shows how the run stands, though its first reading took longer than the run', async () => {
    const editor = host.as('editor');
    const runId = await editor.run(await register(editor, workflow([node('gate', 'core.approvalGate')])));
    const { page } = await open(KEYS.editor.key, 'workflows');
    const held = Promise.withResolvers<void>();
    let readings = 0;
    await page.route(`**/v1/runs/${runId}`, async (route) => {
      if (readings++ > 0) return route.continue();
      const answer = await route.fetch();
      await editor.post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
      await held.promise;
      // The page may have dropped the question by now.
      await route.fulfill({ response: answer }).catch(() => {});
    });
    // The stream is over after the last event: the host ends it, or the page leaves it first.
    const isStream = (request: Request) => request.url().includes(`${runId}/events`);
    const read = Promise.race([
      page.waitForEvent('requestfinished', isStream),
      page.waitForEvent('requestfailed', isStream),
    ]);
    await go(page, `runs/${runId}`);
    await read;
    held.resolve();
    await page.locator('header [data-state=completed]').waitFor();
  });

  it('lists what was said while the feedback was read for the first time', async () => {
    const editor = host.as('editor');
    const runId = await editor.run(await register(editor, workflow([node('a')])));
    await editor.ended(runId);
    const { page } = await open(KEYS.editor.key, 'goals');
    await reloadWithFeed(page);
    let readings = 0;
    await page.route(`**/v1/runs/${runId}/annotations`, async (route) => {
      if (readings++ > 0) return route.continue();
      const answer = await route.fetch();
      // The feed tells of the inbox after it has told of the flag.
      const inbox = page.waitForRequest(/capstan\/inbox\?/);
      await editor.post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' }, note: 'Look at the tone' });
      await inbox;
      await route.fulfill({ response: answer });
    });
    await go(page, `runs/${runId}`);
    await page.getByRole('region', { name: 'Feedback' }).getByText('Look at the tone').waitFor();
  });

  it('corrects the outputs of the run as JSON', async () => {
    const editor = host.as('editor');
    const sum = node('sum', 'core.identity', { inputs: { total: fixed(7), items: fixed([1, 2]) } });
    const runId = await editor.run(await register(editor, workflow([sum])));
    await editor.ended(runId);
    const { page } = await open(KEYS.editor.key, 'goals');
    const held = Promise.withResolvers<void>();
    await page.route(`**/v1/runs/${runId}/events*`, async (route) => {
      await held.promise;
      await route.continue();
    });
    await go(page, `runs/${runId}`);
    const correct = page.getByRole('button', { name: 'Correct', exact: true });
    await correct.waitFor();
    expect(await correct.isDisabled(), 'until what the run gave is known').toBe(true);
    held.resolve();
    await correct.click();
    // A plain field is there until the editor is.
    await page.locator('.cm-content[aria-label="Correct output"]').fill('{ "total": 8 }');
    await page.getByRole('dialog').getByRole('button', { name: 'Record the correction' }).click();
    await page.getByRole('region', { name: 'Feedback' }).getByText('{"total":8}').waitFor();
  });

  it('shows the values that a node got, and where they come from', async () => {
    const editor = host.as('editor');
    const definition = workflow(
      [
        node('read', 'core.identity', { inputs: { order: variable('order') } }),
        node('charge', 'core.identity', {
          inputs: {
            order: connection('read', 'order'),
            words: expression('"Pay " + nodes.read.order.id'),
            key: variable('key'),
            size: expression('size(variables.key)'),
          },
        }),
      ],
      [edge('read', 'charge')],
      {
        variables: [
          { name: 'order', type: 'object' },
          { name: 'key', type: 'string', sensitive: true },
        ],
      },
    );
    const inputs = { order: { id: 'A-7' }, key: 'hunter2-hunter2' };
    const runId = await editor.run(await register(editor, definition), { inputs });
    await editor.ended(runId);
    const { page } = await open(KEYS.editor.key, `runs/${runId}?node=charge`);
    const panel = nodePanel(page, 'charge');
    const port = (name: string) =>
      panel.locator('dl > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) });
    await port('words').getByText('Pay A-7').waitFor();
    await port('words').getByText('= "Pay " + nodes.read.order.id').waitFor();
    await port('order').getByText('from read.order').waitFor();
    await port('order').getByText('A-7').waitFor();
    await port('key').getByText('[REDACTED]').waitFor();
    await port('size').getByText('[REDACTED]').waitFor();
    expect(await page.content()).not.toContain('hunter2');
  });

  it('warns of a condition that could not be evaluated, and says why nodes were skipped', async () => {
    const editor = host.as('editor');
    const condition = { type: 'expression', expression: 'output.order.totl > 100' } as const;
    const skipped = ['ship', 'label', 'load', 'drive', 'ring', 'sign'];
    const definition = workflow(
      [node('read', 'core.identity', { inputs: { order: fixed({ total: 7 }) } }), ...skipped.map((id) => node(id))],
      [edge('read', 'ship', { condition }), ...line(...skipped)],
    );
    const runId = await editor.run(await register(editor, definition));
    await editor.ended(runId);
    const { page } = await open(KEYS.editor.key, `runs/${runId}`);
    const warnings = page.getByRole('region', { name: 'Warnings' });
    await warnings.getByText(/output\.order\.totl > 100: no such key/).waitFor();
    // Which edge it is about is said once the workflow has been read, too.
    await warnings
      .getByRole('listitem')
      .filter({ hasText: /^read → ship: The condition of the edge/ })
      .waitFor();
    expect(await barriers(page)).toEqual([]);
    await warnings.getByRole('button', { name: 'ship' }).click();
    await nodePanel(page, 'ship').getByText('could not be evaluated, so it counted as false').waitFor();
    const outputs = page.getByRole('region', { name: 'Outputs' });
    await outputs.getByText('1 more node was skipped.').waitFor();
    await outputs.getByRole('button', { name: 'label' }).click();
    await nodePanel(page, 'label').getByText('The nodes before it were skipped.').waitFor();
  });

  it('shows each attempt with its error, and those that failed as failed', async () => {
    const editor = host.as('editor');
    const failing = node('call', 'core.fail', {
      config: { code: 'service_busy', message: 'Come back later.' },
      settings: { retry: { maxRetries: 1, delayMs: 1 } },
    });
    const runId = await editor.run(await register(editor, workflow([failing])));
    await editor.ended(runId);
    const { page } = await open(KEYS.editor.key, `runs/${runId}?node=call`);
    const attempts = nodePanel(page, 'call').getByRole('listitem').filter({ hasText: 'Failed' });
    await attempts.nth(1).waitFor();
    expect(await attempts.allInnerTexts()).toEqual([
      expect.stringMatching(/1[\s\S]*Failed[\s\S]*Come back later\./),
      expect.stringMatching(/2[\s\S]*Failed[\s\S]*Come back later\./),
    ]);
    expect(await page.locator('[data-state=running][data-end=failed]').count()).toBe(2);
  });

  it('says that it waits for a worker and what to start, until one has taken the node', async () => {
    const owner = host.as('owner');
    const typeId = 'shop.price';
    await owner.request('PUT', `/v1/host/capstan/workers/types/${typeId}`, { description: 'Prices an order.' });
    const runId = await owner.run(await register(owner, workflow([node('price', typeId)])));
    const { page } = await open(KEYS.owner.key, `runs/${runId}`);
    const needed = page.getByRole('region', { name: 'Waiting for a worker' });
    await needed.getByText('capstan worker --project').waitFor();
    await page.locator('header [data-state=waiting]').waitFor();
    expect(await barriers(page)).toEqual([]);
    const viewer = await open(KEYS.viewer.key, `runs/${runId}`);
    await viewer.page.getByRole('region', { name: 'Waiting for a worker' }).getByText(typeId).waitFor();
    const claim = { types: [typeId], waitSeconds: 10 };
    const { tasks } = (await owner.post('/v1/host/capstan/workers/tasks:claim', claim)).body;
    await passPoll(page);
    await needed.waitFor({ state: 'detached' });
    await page.locator('header [data-state=running]').waitFor();
    const [{ taskId, epoch }] = tasks;
    await owner.post(`/v1/host/capstan/workers/tasks/${taskId}:complete`, { epoch, outputs: { total: 1 } });
    await page.locator('header [data-state=completed]').waitFor();
  });
});

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SECTIONS } from '../../console/operations/search.ts';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, go, PAYLOADS, passPoll, unexpected } from '../support/console.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { shoot } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

/** Operations and quality in a real browser, against a real host. */

const WIDTHS = [390, 1024, 1440];

describe('the operations and quality pages', () => {
  let host: TestHost;
  let browser: Browser;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
    const owner = host.as('owner');
    const inputs = { subject: 'Down', plan: 'enterprise' };
    await owner.post('/v1/host/capstan/schedules', { workflowId: 'support-triage', cron: '0 9 * * 1-5', inputs });
    await owner.post('/v1/webhooks', { url: 'https://example.com/hook', events: ['run.completed'] });
    await register(host.as('editor'), workflow([node('x', 'core.fail')], [], { id: 'always-fails' }));
    await host.as('editor').ended(await host.as('editor').run('always-fails'));
    await owner.request('PUT', '/v1/host/capstan/workers/types/acme.fetch', { description: 'Fetches.' });
    await register(owner, workflow([node('fetch', 'acme.fetch')], [], { id: 'fetching' }));
    await owner.run('fetching');
    const hook = { id: 'orders', type: 'webhook' as const, enabled: true, config: { scheme: 'github' } };
    await register(owner, workflow([node('a')], [], { id: 'hooked', triggers: [hook] }));
    const spent = { 'openwop.cost.tokens.input': 900, 'openwop.cost.tokens.output': 100, 'openwop.cost.usd': 1.5 };
    const spends = node('ask', 'conformance.cost.emit', { config: { attrs: spent } });
    await owner.ended(await owner.run(await register(owner, workflow([spends], [], { id: 'costly' }))));
    const runId = await host.as('editor').run('support-triage', { inputs });
    await host.as('editor').ended(runId);
    await host.as('editor').post(`/v1/runs/${runId}/annotations`, {
      target: { nodeId: 'draft' },
      signal: { kind: 'correction', correction: 'Dear customer' },
    });
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const open = (key: string, rest: string, options = {}) => enter(browser, host.url, key, rest, options);

  it('a key is made, shown once, and revoked', async () => {
    const visited = await open(KEYS.owner.key, 'operations?section=keys');
    const { page } = visited;
    const name = unique('robot');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Role', { exact: true }).selectOption('editor');
    await page.getByRole('button', { name: 'Make key' }).click();
    const key = await page.getByRole('dialog').locator('code').innerText();
    const bearer = { headers: { authorization: `Bearer ${key}` } };
    const isKnown = async () => (await fetch(`${host.url}/v1/host/capstan/runs`, bearer)).status;
    expect(await isKnown()).toBe(200);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('button', { name: `Revoke ${name}` }).click();
    await page.getByText(`${name} no longer works.`).waitFor();
    expect(await isKnown()).toBe(401);
    expect(await page.content()).not.toContain(key);
    expect(unexpected(visited)).toEqual([]);
  });

  it('the audit log says that it is as it was written', async () => {
    const { page } = await open(KEYS.owner.key, 'operations?section=audit');
    await page.getByText(/^✓ Verified, entries/).waitFor();
    await page.getByRole('button', { name: 'webhook.register' }).first().click();
    await page.getByRole('dialog').getByText('owner-of-alpha').waitFor();
    expect(page.url()).toContain('item=');
  });

  it('a schedule tells its next runs, and is turned off', async () => {
    const { page } = await open(KEYS.owner.key, 'operations?section=schedules');
    await page.getByRole('button', { name: '0 9 * * 1-5' }).click();
    const next = page.getByRole('region', { name: 'Next runs' });
    await next.waitFor();
    expect(await next.getByRole('listitem').count()).toBe(5);
    await page.getByRole('button', { name: 'Turn off' }).click();
    await page.getByText('The schedule is disabled.').waitFor();
    const { body } = await host.as('owner').get('/v1/host/capstan/schedules');
    expect(body.items[0].enabled).toBe(false);
  });

  it('a schedule is made, with its next runs in sight, and changed', async () => {
    const visited = await open(KEYS.owner.key, 'operations?section=schedules');
    const { page } = visited;
    await page.getByRole('button', { name: 'New schedule' }).click();
    await page.getByLabel('Workflow').selectOption('always-fails');
    await page.getByLabel('Cron expression').fill('99 * * * *');
    await page.getByText(/invalid/i).waitFor();
    await page.getByRole('button', { name: 'Make schedule' }).click();
    await page.locator('[aria-invalid]').waitFor();
    await page.getByLabel('Cron expression').fill('30 4 * * *');
    await page.getByRole('region', { name: 'Next runs' }).getByRole('listitem').nth(4).waitFor();
    await page.getByLabel('Inputs').fill('{"a":');
    await page.getByRole('button', { name: 'Make schedule' }).click();
    await page.getByText(/This is not JSON/).waitFor();
    await page.getByLabel('Inputs').fill('{"a":1}');
    await page.getByRole('button', { name: 'Make schedule' }).click();
    await page.getByRole('button', { name: '30 4 * * *' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Cron expression').fill('31 4 * * *');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The schedule is changed.').waitFor();
    const { body } = await host.as('owner').get('/v1/host/capstan/schedules?workflowId=always-fails');
    expect(body.items).toMatchObject([{ cron: '31 4 * * *', inputs: { a: 1 }, enabled: true }]);
    await page.getByRole('button', { name: 'Remove …' }).click();
    await page.getByRole('button', { name: 'Remove for good' }).click();
    await page.getByText('The schedule is deleted.').waitFor();
    expect(unexpected(visited, /status of 400/)).toEqual([]);
  });

  it('a webhook is made, its secret shown once, and removed', async () => {
    const visited = await open(KEYS.owner.key, 'operations?section=webhooks');
    const { page } = visited;
    await page.getByRole('button', { name: 'New webhook' }).click();
    await page.getByLabel('Address').fill('https://10.0.0.1/hook');
    await page.getByLabel('Find events').fill('proposal');
    await page.getByLabel('proposal.created').check();
    await page.getByRole('button', { name: 'Make webhook' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Address').fill('https://example.com/made');
    await page.getByRole('button', { name: 'Make webhook' }).click();
    await page.getByText('Copy it now').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'https://example.com/made' }).click();
    const { body } = await host.as('owner').get('/v1/host/capstan/webhooks');
    const events = ['run.completed', 'run.failed', 'proposal.created'];
    expect(body.items).toContainEqual(expect.objectContaining({ url: 'https://example.com/made', events }));
    await page.getByRole('button', { name: 'Remove …' }).click();
    await page.getByRole('button', { name: 'Remove for good' }).click();
    await page.getByText('The webhook is removed.').first().waitFor();
    expect(unexpected(visited, /status of 4/)).toEqual([]);
  });

  it('a trigger has its address, and gets a secret', async () => {
    const { page } = await open(KEYS.owner.key, 'operations?section=triggers');
    await page.getByText('◐ needs a secret').waitFor();
    await page.getByRole('button', { name: 'orders' }).click();
    await page.getByRole('region', { name: 'Address' }).getByText('/v1/host/capstan/hooks/').waitFor();
    await page.getByRole('button', { name: 'Make a secret' }).click();
    await page.getByText('Copy it now').waitFor();
    const [{ id, url }] = (await host.as('owner').get('/v1/host/capstan/triggers')).body.items;
    for (const body of ['{}', '{"a":1}']) await fetch(url, { method: 'POST', body });
    // The host notes refused requests after it has answered them.
    await until(
      async () => (await host.as('owner').get(`/v1/host/capstan/triggers/${id}/deliveries`)).body.items,
      (items) => items[0]?.count === 2,
    );
    await passPoll(page);
    await page.getByRole('cell', { name: '✕ refused × 2' }).waitFor();
    await page.getByRole('cell', { name: 'signature_invalid' }).waitFor();
    expect(await barriers(page)).toEqual([]);
    await shoot(page, 'trigger-light');
    await page.getByLabel('Deliveries').first().selectOption('started');
    await page.getByText('No deliveries').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('● on').waitFor();
  });

  it('workers: what waits, and that nobody serves it', async () => {
    const { page } = await open(KEYS.owner.key, 'operations?section=workers');
    await page.getByText('✕ no worker yet').waitFor();
    await page.getByRole('region', { name: 'Open attempts' }).getByText('◐ waiting').waitFor();
    await host.as('owner').post('/v1/host/capstan/workers/tasks:claim', { types: ['acme.fetch'], worker: 'blue' });
    await passPoll(page);
    await page.getByText('● in hand').waitFor();
    await page.getByRole('cell', { name: 'blue' }).waitFor();
    await page.getByRole('link', { name: 'fetch', exact: true }).click();
    await page.waitForURL(/runs\/run-.*node=fetch/);
  });

  it('the host says how it is, what may be used and what is slow', async () => {
    const { page } = await open(KEYS.owner.key, 'operations');
    await page.getByText(/^SQLite, /).waitFor();
    await page.getByRole('region', { name: 'Hosts' }).last().getByText('● this one').waitFor();
    await page
      .getByRole('link', { name: /support-triage · / })
      .first()
      .waitFor();
    await page.getByText('5,000 / s').waitFor();
  });

  it('costs are in the list of runs, over time, by workflow and by model', async () => {
    const { page } = await open(KEYS.editor.key, 'runs?workflowId=costly', { locale: 'en-US' });
    await page.getByRole('cell', { name: '$1.50' }).waitFor();
    await page.goto(`${host.url}/console/quality`);
    await page.getByRole('figure', { name: 'Cost' }).locator('canvas').waitFor();
    await page.getByRole('row', { name: /conformance · conformance 1 900 100 \$1\.50/ }).waitFor();
    await page.getByRole('row', { name: /^costly .*\$1\.50$/ }).waitFor();
  });

  it('a webhook has its deliveries beside it', async () => {
    const { page } = await open(KEYS.owner.key, 'operations?section=webhooks');
    await page.getByRole('button', { name: 'https://example.com/hook' }).click();
    await page.getByLabel('Deliveries').first().selectOption('dead');
    await page.getByRole('heading', { name: 'No deliveries' }).waitFor();
  });

  it('a viewer sees no part and no button that would fail', async () => {
    const visited = await open(KEYS.viewer.key, 'operations');
    const { page } = visited;
    await page.getByRole('heading', { name: 'Capabilities' }).waitFor();
    const tabs = await page.getByRole('tab').allInnerTexts();
    expect(tabs).toEqual(['Host', 'Triggers', 'Schedules', 'Prompts', 'Agents', 'Tools', 'Packs']);
    await page.goto(`${host.url}/console/operations?section=keys`);
    await page.getByText('Keys need the scope keys:manage').waitFor();
    await page.goto(`${host.url}/console/operations?section=schedules`);
    await page.getByRole('button', { name: '0 9 * * 1-5' }).click();
    await page.getByRole('dialog').waitFor();
    expect(await page.getByRole('button', { name: /^Turn/ }).count()).toBe(0);
    await page.goto(`${host.url}/console/quality`);
    await page.getByRole('region', { name: 'By time' }).first().waitFor();
    expect(unexpected(visited)).toEqual([]);
  });

  it('figures lead to the runs behind them', async () => {
    const visited = await open(KEYS.editor.key, 'quality');
    const { page } = visited;
    await page.getByText('67 %').first().waitFor();
    await page.getByRole('link', { name: 'support-triage · draft' }).waitFor();
    await page.getByRole('figure', { name: 'Success' }).locator('canvas').waitFor();
    const plot = page.getByRole('figure', { name: 'Success' }).locator('.u-over');
    const { width } = (await plot.boundingBox())!;
    await plot.click({ position: { x: width - 2, y: 40 } });
    await page.waitForURL(/runs\?.*until=/);
    await page.getByRole('row').nth(2).waitFor();
    await page.goBack();
    await page.getByRole('region', { name: 'By time' }).getByRole('link').first().click();
    await page.waitForURL(/runs\?.*until=/);
    expect(unexpected(visited)).toEqual([]);
  });

  it('text is text, whatever is in it', async () => {
    for (const payload of PAYLOADS) {
      await host.as('owner').post('/v1/host/capstan/keys', { name: payload, role: 'viewer' });
      await host.as('editor').post('/v1/prompts', {
        templateId: unique('payload'),
        version: '1.0.0',
        kind: 'user',
        name: payload,
        description: payload,
        text: payload,
      });
    }
    const { page } = await open(KEYS.owner.key, 'operations');
    for (const section of ['keys', 'prompts', 'audit']) {
      await page.goto(`${host.url}/console/operations?section=${section}`);
      await page.locator('tbody :is(button, a)').first().click();
      await page
        .getByRole(section === 'prompts' ? 'heading' : 'dialog')
        .first()
        .waitFor();
      expect(await page.evaluate('window.hit'), section).toBeUndefined();
      expect(await page.locator('main iframe, main script, main img').count()).toBe(0);
    }
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const { page } = await open(KEYS.owner.key, 'operations');
    for (const section of SECTIONS) {
      await go(page, `operations?section=${section}`);
      const part = page.locator(`[role=tabpanel][aria-label=${section}]`);
      await part.locator('h2').first().waitFor();
      if (['host', 'audit', 'keys'].includes(section)) await part.locator('table, dl').first().waitFor();
      expect(await misfits(page, WIDTHS), section).toEqual([]);
      expect(await barriers(page), section).toEqual([]);
    }
    await go(page, 'quality');
    await page.locator('canvas').first().waitFor();
    await page.getByRole('region', { name: 'By time' }).first().waitFor();
    expect(await misfits(page, WIDTHS), 'quality').toEqual([]);
    expect(await barriers(page), 'quality').toEqual([]);
    await shoot(page, 'quality-light');
  });
});

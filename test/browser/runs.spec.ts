import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchBrowser } from '../support/browser.ts';
import { enter } from '../support/console.ts';
import { freshFolder } from '../support/database.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { freePort } from '../support/free-port.ts';
import { KEYS, startTestHost } from '../support/host.ts';

/** A run page that outlives the host, and one of a long run. */

/** Each node has two events at least. */
const NODES = 2_500;

describe('the run page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  it('goes on where it was when the host has been restarted', async () => {
    const folder = freshFolder();
    const port = await freePort();
    const first = await startTestHost('sqlite', undefined, { dataFolder: folder.path, port });
    const gate = node('gate', 'core.approvalGate', { config: { title: 'Go on?' } });
    const id = await register(first.as('editor'), workflow([node('a'), gate, node('z')], line('a', 'gate', 'z')));
    const runId = await first.as('editor').run(id);
    const { page } = await enter(browser, first.url, KEYS.editor.key, `runs/${runId}`);
    await page.locator('header [data-state=waiting-approval]').waitFor();
    await first.stop();
    const second = await first.another();
    try {
      expect(second.url).toBe(first.url);
      await second.as('editor').post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
      await page.locator('header [data-state=completed]').waitFor();
      await page.getByRole('tab', { name: 'Events' }).click();
      const events = await second.as('editor').events(runId);
      await page.getByRole('tab', { name: new RegExp(`Events *${events.length}$`) }).waitFor();
      await page.locator('.react-flow__node').nth(2).waitFor();
      expect(await page.locator('.react-flow__node').count()).toBe(3);
    } finally {
      await second.stop();
      folder.remove();
    }
  });

  it('shows its graph when a part of the console could not be loaded at first', async () => {
    const host = await startTestHost('sqlite', undefined);
    try {
      const runId = await host.as('editor').run(await register(host.as('editor'), workflow([node('a')])));
      const { page } = await enter(browser, host.url, KEYS.editor.key, 'workflows');
      let refused = 0;
      await page.route(/assets\/RunGraph-.*\.js/, (route) => (++refused < 2 ? route.abort() : route.continue()));
      await page.goto(`${host.url}/console/runs/${runId}`);
      await page.locator('.react-flow__node').waitFor();
      expect(refused).toBe(2);
    } finally {
      await host.stop();
    }
  });

  it('opens a run with thousands of events, and shows any of them', async () => {
    const host = await startTestHost('sqlite', undefined);
    try {
      const nodes = Array.from({ length: NODES }, (_, index) => node(`n${index}`));
      const id = await register(host.as('editor'), workflow(nodes, line(...nodes.map((each) => each.id))));
      const runId = await host.as('editor').run(id);
      await host.as('editor').ended(runId);
      const { length } = await host.as('editor').events(runId);
      expect(length).toBeGreaterThan(2 * NODES);
      const { page } = await enter(browser, host.url, KEYS.editor.key, `runs/${runId}?tab=events`);
      const list = page.getByRole('region', { name: 'Events' });
      await list.getByRole('button').first().waitFor();
      await page.locator('header [data-state=completed]').waitFor();
      await page.getByRole('tab', { name: new RegExp(`Events *${length}`) }).waitFor();
      // Only what is in view is in the page, however long the log and however large the graph is.
      await page.locator('.react-flow__node').first().waitFor();
      expect(await page.locator('.react-flow__node').count()).toBeLessThan(200);
      expect(await list.getByRole('button').count()).toBeLessThan(200);
      await list.getByRole('button').first().focus();
      await page.mouse.move(0, 0);
      await list.evaluate((element) => {
        const scrolled = [element, ...element.querySelectorAll('*')].find(
          (each) => each.scrollHeight > each.clientHeight + 1_000,
        );
        scrolled?.scrollTo({ top: scrolled.scrollHeight });
      });
      await list.getByText('run.completed').waitFor();
    } finally {
      await host.stop();
    }
  });
});

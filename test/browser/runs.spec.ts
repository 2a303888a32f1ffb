import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser } from '../support/browser.ts';
import { enter, go } from '../support/console.ts';
import { freshFolder } from '../support/database.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { freePort } from '../support/free-port.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { until } from '../support/until.ts';

/** A run page that outlives the host, and one of a long run. */

/** The console asks a host that is away again after this at the latest. */
const LONGEST_PAUSE_MS = 5_000;
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
    const question = page.getByRole('heading', { name: 'Go on?' });
    await question.waitFor();
    const stale = page.getByText(/The host has not answered since \d\d:\d\d:\d\d/);
    expect(await stale.count()).toBe(0);
    await first.stop();
    await stale.waitFor();
    expect(await question.isVisible()).toBe(true);
    expect(await barriers(page)).toEqual([]);
    const second = await first.another();
    await page.clock.fastForward(LONGEST_PAUSE_MS);
    await stale.waitFor({ state: 'detached' });
    try {
      expect(second.url).toBe(first.url);
      await second.as('editor').post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
      // What pauses before it asks again may have begun to do so after the clock was put forward.
      const completed = page.locator('header [data-state=completed]');
      await until(async () => {
        await page.clock.fastForward(LONGEST_PAUSE_MS);
        return completed.isVisible();
      }, Boolean);
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

  it('says that the host is gone when a proxy says so, and not when the host is too busy', async () => {
    const host = await startTestHost('sqlite', undefined);
    try {
      const { page } = await enter(browser, host.url, KEYS.editor.key, 'runs');
      await page.getByRole('heading', { name: 'No runs yet' }).waitFor();
      const refuseAll = (contentType: string, body: string) =>
        page.route('**/v1/**', (route) => route.fulfill({ status: 503, contentType, body }));
      const isShown = (shown: Locator) =>
        until(async () => {
          // The client asks a few times more before the page says what it was told.
          await page.clock.fastForward(LONGEST_PAUSE_MS);
          return shown.isVisible();
        }, Boolean);
      const stale = page.getByText('The host has not answered since');
      const refusal = { error: 'service_unavailable', message: 'The host is too busy. Try again.' };
      await refuseAll('application/json; charset=utf-8', JSON.stringify(refusal));
      await go(page, 'proposals');
      await isShown(page.getByText(refusal.message));
      expect(await stale.isVisible()).toBe(false);
      await refuseAll('text/html', '<h1>503 Service Unavailable</h1>');
      await page.getByRole('button', { name: 'Try again' }).click();
      await isShown(stale);
    } finally {
      await host.stop();
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

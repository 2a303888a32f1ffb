import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, PAYLOAD, PAYLOADS, passUndo, unexpected } from '../support/console.ts';
import { register, workflow } from '../support/definitions.ts';
import {
  evaluations,
  judged,
  never,
  onThird,
  plan,
  planned,
  reaches,
  read,
  registerCounting,
  run,
  setGoal,
} from '../support/goals.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { interrupt } from '../support/interrupts.ts';
import { shootBoth } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

/** The goals of the console in a real browser: followed, steered, answered. */

/** A workflow whose only node is too unsure to go on by itself. */
const unsure = workflow([interrupt('ask', 'low-confidence', { agentId: 'acme.agent', threshold: 0.7, observed: 0.2 })]);

describe('the goal pages', () => {
  let host: TestHost;
  let browser: Browser;
  let counting: string;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
    counting = await registerCounting(host.as('editor'));
    await register(host.as('editor'), unsure);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const open = (key: string, rest: string, options = {}) =>
    enter(browser, host.url, key, rest, { locale: 'en-US', ...options });
  const api = () => host.as('editor');

  /** A goal that was judged twice, and once wrongly. */
  async function judgedTwice(body: object = {}): Promise<string> {
    const id = await planned(api(), body, { criteria: [never] });
    const runId = await run(api(), id);
    await judged(api(), id, 1);
    await run(api(), id);
    await judged(api(), id, 2);
    await api().post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'label', label: 'satisfied' } });
    return id;
  }

  it('a goal is followed until it is satisfied, without looking again', async () => {
    const bounds = { maxLoopIterations: 5, maxCostUsd: 2, runTimeoutMs: 3_600_000 };
    const id = await planned(api(), { objective: 'Three checks are done', bounds }, { criteria: [onThird] });
    const visited = await open(KEYS.editor.key, 'goals');
    const { page } = visited;
    await page.getByRole('region', { name: 'Active' }).getByRole('link', { name: 'Three checks are done' }).click();
    await page.getByText('No run has been judged yet.').waitFor();
    await page.getByRole('button', { name: 'Start a run' }).click();
    const runs = (used: string) => page.locator(`[role=meter][aria-label=Runs][aria-valuetext="${used}"]`);
    await page.getByText('Not yet', { exact: true }).waitFor();
    await runs('1 of 5').waitFor();
    await page.keyboard.press('s');
    await judged(api(), id, 2);
    await page.getByText('Not yet', { exact: true }).nth(1).waitFor();
    await run(api(), id);
    await page.locator('header').getByText('Satisfied', { exact: true }).waitFor();
    // How the goal stands and how far it has come are two answers of the host.
    await runs('3 of 5').waitFor();
    await page.getByRole('img', { name: '3 verdicts: 1 satisfied, 0 disputed.' }).locator('canvas').waitFor();
    expect(await page.getByRole('button', { name: /Pause|Abandon|Start a run/ }).count()).toBe(0);
    const [{ runId }] = (await evaluations(api(), id)).items;
    await page.getByRole('link', { name: runId }).click();
    await page.waitForURL(/runs\/run-/);
    expect(unexpected(visited)).toEqual([]);
  });

  it('a goal is set and planned in forms, which say what the host refuses where it is', async () => {
    const visited = await open(KEYS.editor.key, 'goals');
    const { page } = visited;
    await page.getByRole('button', { name: 'New goal' }).click();
    await page.getByLabel('Objective').fill('Made in a form');
    await page.getByLabel('Runs', { exact: true }).fill('');
    await page.getByRole('button', { name: 'Set goal' }).click();
    await page.getByText('A goal needs bounds').waitFor();
    await page.getByLabel('Runs', { exact: true }).fill('4');
    await page.getByLabel('The next run is started').selectOption('schedule');
    await page.getByRole('button', { name: 'Set goal' }).click();
    await page.getByRole('heading', { name: 'Plan' }).first().waitFor();
    await page.getByLabel('Workflow of the runs').selectOption(counting);
    await page.getByLabel('Cron expression').fill('0 7 * * 1');
    await page.getByRole('button', { name: 'Add a criterion' }).click();
    await page.getByLabel('Name of criterion 1').fill('done');
    await page.getByLabel('Expression of criterion 1').fill('outputs.(');
    await page.getByRole('button', { name: 'Save plan' }).click();
    await page.locator('textarea[aria-invalid]').waitFor();
    await page.getByLabel('Expression of criterion 1').fill('true');
    await page.getByRole('button', { name: 'Save plan' }).click();
    await page.getByText('The plan is saved.').waitFor();
    const goalId = new URL(page.url()).pathname.split('/').at(-1);
    const { body } = await api().get(`/v1/host/capstan/goals/${goalId}/plan`);
    expect(body).toMatchObject({
      workflowId: counting,
      criteria: [{ key: 'done', expression: 'true' }],
      schedule: { cron: '0 7 * * 1' },
    });
    expect(await barriers(page)).toEqual([]);
    expect(unexpected(visited, /status of 4/)).toEqual([]);
  });

  it('a goal is paused, resumed and abandoned', async () => {
    const id = await planned(api(), { objective: 'To be given up' });
    const { page } = await open(KEYS.editor.key, `goals/${id}`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    expect((await evaluations(api(), id)).paused).toBe(true);
    expect(await page.getByRole('button', { name: 'Start a run' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Start a run' }).waitFor();
    await page.getByRole('button', { name: 'Abandon' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Abandon' }).click();
    await page.getByText('Abandoned', { exact: true }).waitFor();
    expect((await read(api(), id)).state).toBe('abandoned');
  });

  it('an escalation is answered on the page of the goal, with a note for the next runs', async () => {
    const id = await planned(api(), { objective: 'Unsure' }, { workflowId: unsure.id });
    const runId = await run(api(), id);
    await reaches(api(), id, 'escalated');
    const { page } = await open(KEYS.editor.key, `goals/${id}`);
    await page.getByText('A run is not confident enough and asks a person.').waitFor();
    await page.getByRole('link', { name: runId }).waitFor();
    await page.getByLabel('A note for the next runs').fill('Try the other list');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Try the other list').waitFor();
    expect(await read(api(), id)).toMatchObject({ state: 'active' });
    expect((await evaluations(api(), id)).note.text).toBe('Try the other list');
  });

  it('an escalation is answered from the inbox with the keyboard', async () => {
    const id = await planned(api(), { objective: 'Unsure again' }, { workflowId: unsure.id });
    await run(api(), id);
    await reaches(api(), id, 'escalated');
    const { page } = await open(KEYS.editor.key, `inbox?item=goal:${id}`);
    await page.getByRole('region', { name: 'Item' }).getByText('Unsure again').first().waitFor();
    await page.getByLabel('A note for the next runs').waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.type('Look twice');
    await passUndo(page, () => page.keyboard.press('Control+Enter'));
    await reaches(api(), id, 'active');
    expect((await evaluations(api(), id)).note.text).toBe('Look twice');
  });

  it('a goal without a plan gets one first; then the inbox starts its run, and resumes it only if it is paused', async () => {
    const { id } = await setGoal(api(), { objective: 'Not started yet' });
    const { page } = await open(KEYS.editor.key, `goals/${id}`);
    await page.getByRole('button', { name: 'Make a plan' }).waitFor();
    expect(await page.getByRole('button', { name: 'Start a run' }).count()).toBe(0);
    const item = page.getByRole('region', { name: 'Item' });
    const button = (name: RegExp) => item.getByRole('button', { name });
    await page.goto(`${host.url}/console/inbox?item=goal:${id}`);
    await item.getByText('The goal has no plan, so no runs start.').waitFor();
    expect(await button(/^(Resume|Start a run)/).count()).toBe(0);
    await item.getByRole('link', { name: 'Make a plan' }).click();
    await page.getByLabel('Workflow of the runs').waitFor();

    await plan(api(), id, { criteria: [never] });
    await api().post(`/v1/goals/${id}/pause`);
    await page.goto(`${host.url}/console/inbox?item=goal:${id}`);
    await button(/^Resume/).waitFor();
    expect(await button(/^Start a run/).count()).toBe(0);
    await passUndo(page, () => page.keyboard.press('a'));
    await until(
      () => evaluations(api(), id),
      ({ paused }) => !paused,
    );
    await page.goto(`${host.url}/console/inbox?item=goal:${id}`);
    await button(/^Start a run/).waitFor();
    expect(await button(/^Resume/).count()).toBe(0);
    await passUndo(page, () => page.keyboard.press('a'));
    await judged(api(), id, 1);
  });

  it('a verdict is disputed, and everybody sees by whom', async () => {
    const id = await planned(api(), { objective: 'Disputed' });
    await run(api(), id);
    await judged(api(), id, 1);
    const { page } = await open(KEYS.editor.key, `goals/${id}`);
    await page.getByRole('button', { name: 'Dispute' }).click();
    await page.getByText('Disputed by editor-of-alpha').waitFor();
    await page.getByRole('img', { name: '1 disputed' }).waitFor();
  });

  it('a viewer sees no button that would fail', async () => {
    const id = await judgedTwice({ objective: 'For viewers' });
    const { page } = await open(KEYS.viewer.key, `goals/${id}`);
    await page.getByText('Editors may pause, resume and abandon it.').waitFor();
    expect(await page.locator('main').getByRole('button').count()).toBe(0);
  });

  it('text is text, whatever is in it', async () => {
    const visited = await open(KEYS.editor.key, 'goals');
    const { page } = visited;
    const criteria = PAYLOADS.map((key) => ({ key, expression: 'false' }));
    const id = await planned(api(), { objective: PAYLOAD }, { workflowId: unsure.id, criteria });
    await run(api(), id);
    await reaches(api(), id, 'escalated');
    await api().post(`/v1/goals/${id}/resume`, { note: PAYLOAD });
    await page.goto(`${host.url}/console/goals/${id}`);
    await page.getByRole('heading', { name: 'Plan' }).waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(await page.locator('main iframe, main script, main img').count()).toBe(0);
    await page.goto(`${host.url}/console/goals`);
    await page.getByRole('link', { name: PAYLOAD }).waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(unexpected(visited)).toEqual([]);
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const bounds = { maxLoopIterations: 3, maxCostUsd: 5, runTimeoutMs: 604_800_000 };
    const id = await judgedTwice({ objective: 'The release checklist is done', bounds });
    const { page } = await open(KEYS.editor.key, 'goals');
    for (const rest of ['goals', `goals/${id}`]) {
      await page.goto(`${host.url}/console/${rest}`);
      await page.getByText('The release checklist is done').first().waitFor();
      if (rest !== 'goals') await page.locator('canvas').waitFor();
      for (const width of [390, 1024, 1440]) {
        expect(await misfits(page, [width]), rest).toEqual([]);
        expect(await barriers(page), `${rest} at ${width}`).toEqual([]);
      }
    }
    await shootBoth(page, 'goal');
  });
});

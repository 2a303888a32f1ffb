import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, go, PAYLOAD, PAYLOADS, unexpected } from '../support/console.ts';
import { edge, fixed, node, register, unique, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { shootBoth } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

/** The workflow pages of the console in a real browser, against a real host. */

describe('the workflow pages', () => {
  let host: TestHost;
  let browser: Browser;
  beforeAll(async () => {
    [host, browser] = await Promise.all([startTestHost('sqlite', undefined), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
  });

  const open = (key: string, rest: string, options = {}) => enter(browser, host.url, key, rest, options);

  /** Adds a node of a type with the catalogue. */
  async function add(page: Page, typeId: string): Promise<void> {
    await page.getByLabel('Search the catalogue').fill(typeId);
    await page.getByRole('region', { name: 'Catalogue' }).getByRole('button', { name: typeId }).first().click();
    await page.getByRole('heading', { name: 'Node', exact: true }).waitFor();
  }

  /** Versions with a node more each. */
  async function versions(count: number): Promise<string> {
    const id = unique('versions');
    const nodes = [node('a'), node('b'), node('c')];
    for (let length = 1; length <= count; length += 1) {
      await register(host.as('editor'), workflow(nodes.slice(0, length), [], { id, name: 'With versions' }));
    }
    return id;
  }

  it('three nodes are put together in the editor, saved and run', async () => {
    const visited = await open(KEYS.editor.key, 'workflows');
    const { page } = visited;
    await page.getByRole('button', { name: 'New workflow' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Made by hand');
    expect(await page.getByLabel('Id', { exact: true }).inputValue()).toBe('made-by-hand');
    await page.getByRole('button', { name: 'Add variable' }).click();
    await page.getByLabel('Name of variable 1').fill('subject');
    await add(page, 'core.identity');
    await page.getByRole('button', { name: 'Add input', exact: true }).click();
    await page.getByLabel('Name of input 1').fill('subject');
    await page.getByLabel('Source of subject').selectOption('variable');
    await page.getByLabel('Variable of subject').selectOption('subject');
    await add(page, 'core.openwop.data.string-format');
    await page.getByText('A required input is missing: template.').waitFor();
    await page.getByText('template *').waitFor();
    await page.getByRole('button', { name: 'Add input template' }).click();
    await page.getByLabel('Value of template').fill('About {{ subject }}');
    await page.getByRole('button', { name: 'Add input', exact: true }).click();
    await page.getByLabel('Name of input 2').fill('subject');
    await page.getByLabel('Source of subject').selectOption('connection');
    await page.getByLabel('Node of subject').selectOption('identity');
    await page.getByLabel('Output of subject').fill('subject');
    await add(page, 'core.setVariable');
    const problems = page.getByRole('region', { name: 'Problems', exact: true });
    await problems.getByText('is missing').waitFor();
    expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true);
    await page.getByLabel('name (required)').fill('subject');
    await page.getByRole('button', { name: 'Add input', exact: true }).click();
    await page.getByLabel('Source of value').selectOption('expression');
    await page.locator('.cm-content[aria-label="Expression of value"]').fill('nodes["string-format"].text');
    await problems.getByText('The host would accept this definition.').waitFor();
    expect(await page.locator('.react-flow__node').count()).toBe(3);
    await page.getByRole('button', { name: 'Save and run' }).click();
    await page.getByRole('dialog').getByLabel('subject').fill('cats');
    await page.getByRole('dialog').getByRole('button', { name: 'Start run' }).click();
    await page.waitForURL(/runs\/run-/);
    await page.locator('header [data-state=completed]').waitFor();
    const runId = page.url().split('/').at(-1)!;
    expect((await host.as('editor').get(`/v1/runs/${runId}`)).body.variables).toEqual({ subject: 'About cats' });
    // What the host refuses of a draft is what the page shows.
    expect(unexpected(visited, /status of 422/)).toEqual([]);
  });

  it('ports are connected by dragging from one to the other', async () => {
    const id = unique('ports');
    const nodes = [
      node('first', 'core.delay', { config: { delayMs: 1 } }),
      node('second', 'core.identity', { inputs: { waited: fixed(0) }, position: { x: 320, y: 0 } }),
    ];
    await register(host.as('editor'), workflow(nodes, [], { id }));
    const { page } = await open(KEYS.editor.key, `workflows/${id}/edit`, { viewport: { width: 1440, height: 900 } });
    const [from, to] = [page.locator('[data-handleid="out:waitedMs"]'), page.locator('[data-handleid="in:waited"]')];
    // The nodes may move once more when their sizes are known; a port that was let go beside the other connects nothing.
    await until(
      async () => {
        await from.dragTo(to);
        return page.locator('.react-flow__edge').count();
      },
      (count) => count > 0,
    );
    await page.getByText('The host would accept this definition.').waitFor();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as version 2.').waitFor();
    const { body } = await host.as('editor').get(`/v1/workflows/${id}`);
    expect(body.nodes[1].inputs.waited).toEqual({ type: 'connection', nodeId: 'first', outputKey: 'waitedMs' });
    expect(body.edges).toMatchObject([{ sourceNodeId: 'first', targetNodeId: 'second' }]);
  });

  it('a condition is edited, undone and redone, and a wrong one is said before anything is saved', async () => {
    const id = unique('conditions');
    const nodes = [
      node('a', 'core.identity', { inputs: { n: fixed(1) } }),
      node('b', 'core.noop', { position: { x: 300, y: 0 } }),
    ];
    await register(host.as('editor'), workflow(nodes, [edge('a', 'b')], { id }));
    const { page } = await open(KEYS.editor.key, `workflows/${id}/edit`);
    // Edges are drawn anew when the sizes of their nodes are known; the first of them may take the key with it.
    const taken = page.getByLabel('Taken');
    await until(
      async () => {
        await page.getByLabel('Edge from a to b').press('Enter');
        return taken.isVisible();
      },
      (isVisible) => isVisible,
    );
    await taken.selectOption('expression');
    // The editor takes the place of a plain field once it has been loaded.
    const expression = page.locator('.cm-content[aria-label="Expression"]');
    await expression.fill('output.n >');
    const problems = page.getByRole('region', { name: 'Problems', exact: true });
    await problems.getByText('edges[0]').waitFor();
    await expression.fill('output.n > 0');
    await problems.getByText('The host would accept this definition.').waitFor();
    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    await page.getByRole('button', { name: 'Redo', exact: true }).click();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as version 2.').waitFor();
    const { body } = await host.as('editor').get(`/v1/workflows/${id}`);
    expect(body.edges[0].condition).toEqual({ type: 'expression', expression: 'output.n > 0' });
  });

  it('versions are compared, and an older one is edited again', async () => {
    const id = await versions(3);
    const visited = await open(KEYS.editor.key, `workflows/${id}?view=versions`);
    const { page } = visited;
    await page.getByText('Added node c').waitFor();
    await page.getByRole('combobox', { name: 'Old version' }).selectOption('1');
    await page.getByText('Added node b').waitFor();
    expect(page.url()).toContain('left=1');
    await page.getByRole('textbox', { name: 'New version' }).waitFor();
    await page.getByRole('link', { name: 'Edit from version 1' }).click();
    await page.locator('.react-flow__node').waitFor();
    expect(await page.locator('.react-flow__node').count()).toBe(1);
    expect(unexpected(visited)).toEqual([]);
  });

  it('a run is shown by the version that it has', async () => {
    const id = await versions(1);
    const runId = await host.as('editor').run(id);
    await host.as('editor').ended(runId);
    await register(host.as('editor'), workflow([node('x'), node('y')], [], { id }));
    const { page } = await open(KEYS.editor.key, `runs/${runId}?tab=state&at=1`);
    await page.locator('.react-flow__node[data-id=a]').waitFor();
    expect(await page.locator('.react-flow__node').count()).toBe(1);
    await page.getByRole('region', { name: 'Variables' }).waitFor();
  });

  it('a viewer sees no button that would fail', async () => {
    const id = await versions(2);
    const { page } = await open(KEYS.viewer.key, 'workflows');
    await page.getByRole('link', { name: 'With versions' }).first().waitFor();
    expect(await page.getByRole('button', { name: 'New workflow' }).count()).toBe(0);
    await page.goto(`${host.url}/console/workflows/${id}?view=versions`);
    await page.getByText('Added node b').waitFor();
    for (const name of [/^Edit/, /^Start/, /^Remove/]) {
      expect(await page.getByRole('button', { name }).count(), String(name)).toBe(0);
      expect(await page.getByRole('link', { name }).count(), String(name)).toBe(0);
    }
    for (const rest of ['new-workflow', `workflows/${id}/edit`]) {
      await page.goto(`${host.url}/console/${rest}`);
      await page.getByRole('heading', { name: 'You may not edit workflows' }).waitFor();
    }
  });

  it('text is text, whatever is in it', async () => {
    const visited = await open(KEYS.editor.key, 'workflows');
    const { page } = visited;
    const id = unique('payload');
    const nodes = [
      ...PAYLOADS.map((text, y) =>
        node(text, 'core.noop', { name: text, notes: text, position: { x: 0, y: y * 100 } }),
      ),
      node('b', 'core.identity', {
        inputs: Object.fromEntries(PAYLOADS.map((text) => [text, fixed(text)])),
        position: { x: 300, y: 0 },
      }),
    ];
    const edges = PAYLOADS.map((text, index) => edge(text, 'b', { id: `e${index}`, label: text }));
    const variables = PAYLOADS.map((name) => ({ name, type: 'string' as const, description: name }));
    const more = { id, name: PAYLOAD, description: PAYLOAD, variables };
    await register(host.as('editor'), workflow(nodes, edges, more));
    await register(host.as('editor'), workflow(nodes, [], more));
    for (const rest of ['?view=graph&node=b', '?view=versions', '?view=definition', '?starting=true', '/edit']) {
      await page.goto(`${host.url}/console/workflows/${id}${rest}`);
      await page.locator('h1', { hasText: PAYLOAD }).waitFor();
      expect(await page.evaluate('window.hit')).toBeUndefined();
    }
    for (const shown of [
      ...PAYLOADS.map((hasText) => ({ hasText })),
      { has: page.locator('[data-handleid^="in:"]') },
    ]) {
      await page.locator('.react-flow__node', shown).first().click();
      await page.getByRole('heading', { name: 'Node', exact: true }).waitFor();
      expect(await page.evaluate('window.hit')).toBeUndefined();
    }
    expect(await page.locator('main iframe, main script, main img').count()).toBe(0);
    await page.goto(`${host.url}/console/workflows`);
    await page.getByRole('link', { name: PAYLOAD }).waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(unexpected(visited)).toEqual([]);
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const id = await versions(2);
    const triage = 'support-triage';
    await host.as('editor').ended(await host.as('editor').run(triage, { inputs: { subject: 'Down', plan: 'free' } }));
    const { page } = await open(KEYS.editor.key, 'workflows', { viewport: { width: 1440, height: 900 } });
    for (const [name, rest, wait] of [
      ['workflows', 'workflows', 'tbody tr'],
      ['workflow', `workflows/${triage}`, '.react-flow__node'],
      ['versions', `workflows/${id}?view=versions`, '.cm-merge-b'],
      ['workflow-runs', `workflows/${triage}?view=runs`, 'tbody tr'],
      ['definition', `workflows/${triage}?view=definition`, '[role=tabpanel][aria-label=definition]'],
      ['editor', `workflows/${triage}/edit`, '.react-flow__node'],
      ['new-workflow', 'new-workflow', 'h1:text("New workflow")'],
    ] as const) {
      await go(page, rest);
      await page.locator(wait).first().waitFor();
      if (name === 'editor') await page.locator('.react-flow__node').first().click();
      expect(await barriers(page), name).toEqual([]);
      await shootBoth(page, name);
      expect(await misfits(page, [390, 1024, 1440]), name).toEqual([]);
      await page.setViewportSize({ width: 1440, height: 900 });
    }
  });
});

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { barriers, launchBrowser, misfits } from '../support/browser.ts';
import { enter, PAYLOAD, PAYLOADS, passUndo, undo, unexpected } from '../support/console.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, register, workflow } from '../support/definitions.ts';
import { freePort } from '../support/free-port.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, clarification, eventsOf, governanceGate, interrupt, waitingRun } from '../support/interrupts.ts';
import { drafted, template } from '../support/proposals.ts';
import { shootBoth } from '../support/screenshots.ts';
import { until } from '../support/until.ts';

/** The inbox of the console in a real browser: the keyboard answers everything that waits. */

describe('the inbox page', () => {
  let host: TestHost;
  let browser: Browser;
  const folder = freshFolder();
  beforeAll(async () => {
    // A port that stays the host's while it is away.
    const starting = startTestHost('sqlite', undefined, { dataFolder: folder.path, port: await freePort() });
    [host, browser] = await Promise.all([starting, launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await host?.stop();
    folder.remove();
  });

  const open = (key: string, rest: string, options = {}) =>
    enter(browser, host.url, key, rest, { locale: 'en-US', ...options });

  /** A run that waits, and its item in the address. */
  async function waiting(node: Parameters<typeof workflow>[0][number], by = host.as('editor'), rest = {}) {
    const { runId, interrupt: asked } = await waitingRun(by, await register(by, workflow([node])), rest);
    const kind = 'gateId' in asked.data ? 'gate' : 'interrupt';
    return { runId, item: `${kind}:${asked.interruptId}` as string };
  }

  /** What was answered, once the host has it. */
  async function answerTo(runId: string): Promise<Record<string, unknown>> {
    const [resolved] = await until(
      () => eventsOf(host.as('editor'), runId, 'interrupt.resolved'),
      (events) => events.length > 0,
    );
    return resolved.payload;
  }

  const question = (page: Page) => page.getByRole('region', { name: 'Item' });
  const row = (page: Page, title: string) =>
    page.getByRole('region', { name: 'Queue' }).getByRole('link', { name: title });

  it('an approval is answered with the keyboard alone, and the queue goes on to the next one', async () => {
    const first = await waiting(approval('gate', { title: 'Send the first letter' }, { inputs: { to: fixed('Ada') } }));
    const second = await waiting(approval('gate', { title: 'Send the second letter' }));
    const visited = await open(KEYS.editor.key, 'runs');
    const { page } = visited;
    await page.getByText('waiting').first().waitFor({ state: 'attached' });
    await page.keyboard.press('g');
    await page.keyboard.press('i');
    await question(page).getByRole('heading', { name: 'Send the first letter' }).waitFor();
    expect(await row(page, 'Send the first letter').innerText()).toMatch(
      new RegExp(`Ada\\s+Answer · .+ › gate[^]*Run …${first.runId.slice(-6)} by editor-of-alpha`),
    );
    expect(await page.title()).toMatch(/^\(\d+\) Capstan$/);
    await page.keyboard.press('j');
    await question(page).getByRole('heading', { name: 'Send the second letter' }).waitFor();
    await page.keyboard.press('ArrowUp');
    await question(page).getByText('Ada').first().waitFor();
    await page.keyboard.press('a');
    await question(page).getByRole('heading', { name: 'Send the second letter' }).waitFor();
    await page.keyboard.press('r');
    await page.keyboard.type('Wrong customer');
    await passUndo(page, async () => {
      await page.keyboard.press('Enter');
      await row(page, 'Send the second letter').waitFor({ state: 'detached' });
    });
    expect(await answerTo(first.runId)).toMatchObject({
      resumeValue: { action: 'accept' },
      resolvedBy: 'editor-of-alpha',
    });
    expect(await answerTo(second.runId)).toMatchObject({
      resumeValue: { action: 'reject', feedback: 'Wrong customer' },
    });
    expect(unexpected(visited)).toEqual([]);
  });

  it('an answer can be undone before it is sent', async () => {
    const { runId, item } = await waiting(approval('gate', { title: 'Delete the archive' }));
    const { page } = await open(KEYS.editor.key, `inbox?item=${item}`);
    const approve = question(page).getByRole('button', { name: /^Approve/ });
    await approve.waitFor();
    await undo(page, async () => {
      await approve.click();
      await row(page, 'Delete the archive').waitFor({ state: 'detached' });
    });
    await row(page, 'Delete the archive').click();
    await question(page)
      .getByRole('button', { name: /^Reject/ })
      .waitFor();
    expect(await eventsOf(host.as('editor'), runId, 'interrupt.resolved')).toEqual([]);
    await host.as('editor').post(`/v1/runs/${runId}/cancel`);
  });

  it('an answer that could still be undone is sent when the page is left', async () => {
    const { runId, item } = await waiting(approval('gate', { title: 'Approve and leave' }));
    const { page } = await open(KEYS.editor.key, `inbox?item=${item}`);
    await question(page)
      .getByRole('button', { name: /^Approve/ })
      .click();
    await page.getByText('Approving … Sent in 5 seconds.').waitFor();
    await page.goto('about:blank');
    expect(await answerTo(runId)).toMatchObject({ resumeValue: { action: 'accept' } });
  });

  it('what is approved is edited in a form that looks like it', async () => {
    const artifactData = { subject: 'Hello', priority: 2, tags: ['a', 'b'], author: { name: 'Ada' } };
    const { runId, item } = await waiting(interrupt('gate', 'approval', edited(artifactData)));
    const { page } = await open(KEYS.editor.key, `inbox?item=${item}`);
    await question(page).getByRole('heading', { name: 'Send the invoice to Ada' }).waitFor();
    await page.keyboard.press('e');
    await page.getByLabel('subject').fill('Good day');
    await page.getByLabel('priority').fill('many');
    await page.getByRole('textbox', { name: 'tags 2' }).fill('c');
    await page.keyboard.press('Control+Enter');
    await page.getByText('This must be number.').waitFor();
    await page.getByLabel('priority').fill('3');
    await passUndo(page, () => page.keyboard.press('Control+Enter'));
    const editedArtifactData = { subject: 'Good day', priority: 3, tags: ['a', 'c'], author: { name: 'Ada' } };
    expect(await answerTo(runId)).toMatchObject({ resumeValue: { action: 'edit-accept', editedArtifactData } });
  });

  it('questions are a form by their schemas, and Enter begins it', async () => {
    const questions = [
      { id: 'colour', question: 'Which colour?', schema: { enum: ['red', 'blue'] } },
      { id: 'count', question: 'How many?', schema: { type: 'integer', minimum: 1, maximum: 9 } },
      { id: 'why', question: 'Why?' },
    ];
    const { runId, item } = await waiting(clarification('ask', questions));
    const { page } = await open(KEYS.editor.key, `inbox?item=${item}`);
    await page.getByLabel('Which colour?').waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.press('b');
    await page.getByLabel('How many?').fill('12');
    await page.keyboard.press('Control+Enter');
    await page.getByText('At most 9.').waitFor();
    await page.getByText('Fill this in.').waitFor();
    await page.getByLabel('How many?').fill('7');
    await page.getByLabel('Why?').fill('Because');
    await passUndo(page, () => page.keyboard.press('Control+Enter'));
    const answers = { colour: 'blue', count: 7, why: 'Because' };
    expect(await answerTo(runId)).toMatchObject({ resumeValue: { answers } });
  });

  it('any other interrupt is a form by its resume schema', async () => {
    const resumeSchema = {
      type: 'object',
      required: ['signed'],
      properties: { signed: { type: 'boolean', title: 'Signed' }, by: { type: 'string', title: 'By whom' } },
    };
    const { runId, item } = await waiting(
      interrupt('sign', 'custom', { customKind: 'acme.signature' }, { resumeSchema }),
    );
    const { page } = await open(KEYS.editor.key, `inbox?item=${item}`);
    await page.getByLabel('Signed').check();
    await page.getByLabel('By whom (optional)').fill('Ada');
    await passUndo(page, () => page.keyboard.press('Control+Enter'));
    expect(await answerTo(runId)).toMatchObject({ resumeValue: { signed: true, by: 'Ada' } });
  });

  it('a gate gets back the hash of what was looked at, and counts the votes', async () => {
    const artifactHash = 'c'.repeat(64);
    const gate = governanceGate('gate', { title: 'Deploy', requiredRole: 'reviewer', quorum: 2, artifactHash });
    const { runId, item } = await waiting(gate);
    const { page } = await open(KEYS.reviewer.key, `inbox?item=${item}`);
    await page.getByText(artifactHash).waitFor();
    await passUndo(page, () => page.keyboard.press('a'));
    await until(
      () => eventsOf(host.as('editor'), runId, 'approval.granted'),
      (events) => events.length === 1,
    );
    await page.goto(`${host.url}/console/inbox?item=${item}`);
    await question(page).getByText('1 of 2').waitFor();
    await question(page).getByText('approvals: reviewer-of-alpha').waitFor();
  });

  it.each([
    ['viewer', approval('gate', { title: 'Not for viewers' }), 'Answering needs the scope approvals:respond'],
    [
      'editor',
      governanceGate('gate', { title: 'For owners', requiredRole: 'owner' }),
      'Only the role owner may decide this',
    ],
    ['editor', approval('gate', { title: 'For Bob', approversList: ['bob'] }), 'Only bob may answer this'],
  ] as const)('a %s who may not answer sees why, and no button that would fail', async (who, node, why) => {
    const { item } = await waiting(node);
    const { page } = await open(KEYS[who].key, `inbox?item=${item}`);
    await question(page).getByText(why).waitFor();
    expect(
      await question(page)
        .getByRole('button', { name: /Approve|Reject|Edit|Ask|Answer/ })
        .count(),
    ).toBe(0);
    await page.keyboard.press('a');
    expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0);
  });

  it('whoever started a run with four eyes may reject it, and not approve', async () => {
    const { item } = await waiting(approval('gate', { title: 'Four eyes', excludeInitiator: true }));
    const { page } = await open(KEYS.editor.key, `inbox?item=${item}`);
    await question(page).getByText('You started this run').waitFor();
    expect(
      await question(page)
        .getByRole('button', { name: /pprove/ })
        .count(),
    ).toBe(0);
    expect(
      await question(page)
        .getByRole('button', { name: /^Reject/ })
        .count(),
    ).toBe(1);
  });

  it('a flagged run leaves the queue when it is marked as reviewed', async () => {
    const editor = host.as('editor');
    const runId = await editor.run('support-triage', { inputs: { subject: 'Help', plan: 'free' } });
    await editor.ended(runId);
    await editor.post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' }, note: 'Look at the tone' });
    const { page } = await open(KEYS.editor.key, 'inbox');
    await row(page, 'support-triage').click();
    await question(page).getByText('Look at the tone').waitFor();
    await page.keyboard.press('4');
    await question(page).getByText('4 of 5', { exact: true }).waitFor();
    const reviewed = question(page).getByRole('button', { name: /Mark as reviewed/ });
    await passUndo(page, () => reviewed.click());
    const { annotations } = await until(
      async () => (await editor.get(`/v1/runs/${runId}/annotations`)).body,
      (body) => body.annotations.length === 3,
    );
    expect(annotations[2].signal).toEqual({ kind: 'label', label: 'reviewed' });
  });

  it('who else looks at an item is seen at it and in the queue, until they go on, leave or sign out', async () => {
    const { item } = await waiting(approval('gate', { title: 'Looked at by two' }));
    const mine = await open(KEYS.editor.key, `inbox?item=${item}`);
    const { page } = mine;
    await question(page).getByRole('heading', { name: 'Looked at by two' }).waitFor();
    const theirs = await open(KEYS.reviewer.key, `inbox?item=${item}`);
    const seen = question(page).getByText('reviewer-of-alpha is looking at this');
    await seen.waitFor();
    await question(theirs.page).getByText('editor-of-alpha is looking at this').waitFor();
    expect(await row(page, 'Looked at by two').textContent()).toContain('Open at: reviewer-of-alpha');
    expect(await barriers(page)).toEqual([]);
    await theirs.page.keyboard.press('g');
    await theirs.page.keyboard.press('r');
    await seen.waitFor({ state: 'detached' });
    await theirs.page.goto(`${host.url}/console/inbox?item=${item}`);
    await seen.waitFor();
    await theirs.page.getByRole('button', { name: 'Sign out' }).click();
    await seen.waitFor({ state: 'detached' });
    expect([...unexpected(mine), ...unexpected(theirs)]).toEqual([]);
  });

  it('names of those who look are text, and many of them are a number', async () => {
    const { runId, item } = await waiting(approval('gate', { title: 'Looked at by many' }));
    const [kind, id] = item.split(':');
    const visited = await open(KEYS.editor.key, 'runs');
    const { page } = visited;
    const viewers = PAYLOADS.map((principal) => ({ kind, id, runId, principal, since: new Date().toISOString() }));
    await page.route('**/inbox/viewers', (route) => route.fulfill({ json: { items: viewers } }));
    await page.goto(`${host.url}/console/inbox?item=${item}`);
    await question(page)
      .getByText(`and ${PAYLOADS.length - 3} more are looking at this`)
      .waitFor();
    await question(page).getByText(PAYLOADS[0]!).waitFor();
    expect(await page.evaluate('window.hit')).toBeUndefined();
    expect(unexpected(visited)).toEqual([]);
  });

  it('what comes while somebody looks waits behind a button, also after the host was away', async () => {
    await waiting(approval('gate', { title: 'Was here before' }));
    const { page } = await open(KEYS.editor.key, 'inbox');
    await row(page, 'Was here before').first().waitFor();
    await waiting(approval('gate', { title: 'Came later' }));
    await page.getByRole('button', { name: /^\d+ new$/ }).click();
    await row(page, 'Came later').waitFor();
    await host.stop();
    host = await host.another();
    await waiting(approval('gate', { title: 'Came after the restart' }));
    await page.getByRole('button', { name: /^\d+ new$/ }).click();
    await row(page, 'Came after the restart').waitFor();
  });

  it('a feed that the host no longer has is begun anew, and nothing is missed', async () => {
    await waiting(approval('gate', { title: 'Before the gap' }));
    const { page } = await open(KEYS.editor.key, 'runs');
    let refusals = 0;
    const { promise: madeInTheGap, resolve: endGap } = Promise.withResolvers<void>();
    await page.route('**/v1/host/capstan/events', async (route) => {
      const gone = { error: 'validation_error', message: 'Last-Event-ID is no longer stored.' };
      if (refusals++ === 0) return route.fulfill({ status: 400, json: gone });
      await madeInTheGap;
      return route.continue();
    });
    await page.goto(`${host.url}/console/inbox`);
    await row(page, 'Before the gap').waitFor();
    await waiting(approval('gate', { title: 'After the gap' }));
    endGap();
    await page.getByRole('button', { name: /^\d+ new$/ }).click();
    await row(page, 'After the gap').waitFor();
    expect(refusals).toBe(2);
  });

  it('who wants it is told of new items while they look at something else', async () => {
    await waiting(approval('gate', { title: 'Already there' }));
    const visited = await open(KEYS.editor.key, 'runs', { permissions: ['notifications'] });
    const { page } = visited;
    await page.addInitScript(`
      window.told = [];
      window.Notification = class { static permission = 'granted'; static requestPermission = async () => 'granted';
        constructor(title, { body }) { window.told.push(body); } };
    `);
    await page.goto(`${host.url}/console/inbox`);
    await page.getByRole('button', { name: 'Notify me of new items' }).click();
    await page.locator('[aria-pressed=true]').waitFor();
    await page.evaluate("Object.defineProperty(document, 'hidden', { value: true })");
    await waiting(approval('gate', { title: 'Come and look' }));
    const told = await until(
      () => page.evaluate<string[]>('window.told'),
      ({ length }) => length > 0,
    );
    expect(told).toEqual(['Come and look']);
    expect(unexpected(visited)).toEqual([]);
  });

  it('text is text, whatever is in it', async () => {
    const visited = await open(KEYS.editor.key, 'inbox');
    const { page } = visited;
    const data = { title: PAYLOAD, description: PAYLOAD, approversList: [...PAYLOADS, 'editor-of-alpha'] };
    const made = [
      await waiting(approval('gate', data, { inputs: { text: fixed(PAYLOAD) } })),
      await waiting(
        clarification(
          'ask',
          PAYLOADS.map((id) => ({ id, question: id, schema: { enum: [id] } })),
        ),
      ),
    ];
    for (const { item, runId } of made) {
      await page.goto(`${host.url}/console/inbox?item=${item}`);
      await question(page).locator('[type=submit], [aria-keyshortcuts=a]').waitFor();
      expect(await page.evaluate('window.hit')).toBeUndefined();
      expect(await page.locator('main iframe, main script, main img').count()).toBe(0);
      await host.as('editor').post(`/v1/runs/${runId}/cancel`);
    }
    // Some were cancelled just before the page said that it shows them.
    expect(unexpected(visited, /status of 404.*\/inbox\/viewers\//)).toEqual([]);
  });

  it('bars nobody in either theme, and fits every window', async () => {
    const own = await startTestHost('sqlite', undefined);
    const editor = own.as('editor');
    try {
      const letter = { subject: 'Your invoice of May', body: 'Dear Ada,\nplease find it attached.', amount: 120 };
      await waiting(governanceGate('gate', { title: 'Release 4.2 to everybody', requiredRole: 'reviewer' }), editor);
      const { item } = await waiting(interrupt('gate', 'approval', edited(letter)), editor);
      const asking = await waiting(clarification('ask', [{ id: 'q', question: 'Which account pays?' }]), editor);
      await drafted(editor, 'prompt-template', template(), { title: 'A shorter weekly digest' });
      const { page } = await enter(browser, own.url, KEYS.editor.key, 'inbox', { locale: 'en-US' });
      for (const rest of ['inbox', `inbox?item=${asking.item}`, `inbox?item=${item}`]) {
        await lookAt(own.as('reviewer'), item);
        await page.goto(`${own.url}/console/${rest}`);
        const isOpen = rest !== 'inbox';
        await page.getByText('reviewer-of-alpha').first().waitFor({ state: 'attached' });
        await page
          .locator(isOpen ? '[type=submit], [aria-keyshortcuts=a]' : 'main ul a')
          .first()
          .waitFor();
        for (const width of [1024, 1440, 390]) {
          expect(await misfits(page, [width]), rest).toEqual([]);
          expect(await barriers(page), `${rest} at ${width}`).toEqual([]);
        }
      }
      await shootBoth(page, 'inbox-phone');
      await page.setViewportSize({ width: 1440, height: 844 });
      await shootBoth(page, 'inbox');
    } finally {
      await own.stop();
    }
  });
});

/** Somebody else has an item open, for some seconds. */
async function lookAt(by: Api, item: string): Promise<void> {
  const { items } = (await by.get('/v1/host/capstan/inbox')).body;
  const [kind, wanted] = item.split(':');
  const { id, runId, createdAt } = items.find((each: { id: string }) => each.id === wanted);
  await by.request('PUT', '/v1/host/capstan/inbox/viewers/other-window', { kind, id, runId, createdAt });
}

function edited(artifactData: object) {
  const actions = ['accept', 'reject', 'edit-accept', 'refine'];
  return { artifactId: 'letter', artifactType: 'letter', title: 'Send the invoice to Ada', actions, artifactData };
}

/** What the console takes in a real browser: its first load, and a run with 50,000 events. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Browser, Page } from 'playwright-core';
import { RUN_PREFIX } from '../src/runtime/creation.ts';
import { insertEvents, insertRun, type StoredEvent } from '../src/store/log.ts';
import { firstIdAt } from '../src/system/ids.ts';
import { launchBrowser, visit } from '../test/support/browser.ts';
import { enter } from '../test/support/console.ts';
import { line, node, workflow } from '../test/support/definitions.ts';
import { RUN, writerFor } from './planted.ts';
import { KEY, startCapstan } from './servers.ts';

const EVENTS = 50_000;
const NODES = 20;
const ROUNDS = 3;
const WORKFLOW = 'long-run';
/** A frame that came so late that the one before it was shown twice. */
const DROPPED_MS = 1_000 / 60 + 1_000 / 120;
const SCROLLS = 120;

export async function benchConsole(): Promise<void> {
  console.log(`\nthe console: first load, and a run with ${EVENTS.toLocaleString('en')} events, ${ROUNDS} rounds`);
  const capstan = await startCapstan();
  const browser = await launchBrowser();
  try {
    const nodes = Array.from({ length: NODES }, (_, index) => node(`step-${index}`, 'core.noop'));
    const definition = workflow(nodes, line(...nodes.map(({ id }) => id)), { id: WORKFLOW });
    await fetch(`${capstan.url}/v1/host/capstan/workflows`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(definition),
    });
    const runId = plant(join(capstan.folder, 'capstan.db'));
    const scripts = await firstLoad(browser, capstan.url);
    console.log(`  first load: ${(scripts / 1_000).toFixed(0)} kB of compressed script (under 300 wanted)`);
    const opened: number[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      const { openedMs, frames } = await openRun(browser, capstan.url, runId);
      opened.push(openedMs);
      const dropped = frames.filter((ms) => ms > DROPPED_MS).length;
      console.log(
        `  round ${round}: open ${openedMs.toFixed(0)} ms   scrolling ${frames.length} frames, ${dropped} late, ` +
          `longest ${Math.max(...frames).toFixed(0)} ms`,
      );
    }
    const median = opened.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!;
    console.log(`  median open ${median.toFixed(0)} ms (under 2,000 wanted)`);
  } finally {
    await browser.close();
    await capstan.stop();
  }
}

/** The bytes of script that the list of runs needs, as they are sent. */
async function firstLoad(browser: Browser, url: string): Promise<number> {
  const sizes: Promise<number>[] = [];
  const { page } = await visit(browser, 'about:blank');
  page.on('requestfinished', (request) => {
    if (!new URL(request.url()).pathname.endsWith('.js')) return;
    sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
  });
  await page.goto(`${url}/console/runs`);
  await page.fill('input[name=key]', KEY);
  await page.click('button[type=submit]');
  await page.getByRole('table', { name: 'Runs' }).waitFor();
  await page.context().close();
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** Until all events are counted and the first lines of the log are drawn; then scrolls through it. */
async function openRun(browser: Browser, url: string, runId: string): Promise<{ openedMs: number; frames: number[] }> {
  const viewport = { width: 1_440, height: 900 };
  const { page } = await enter(browser, url, KEY, 'runs', { viewport, reducedMotion: 'no-preference' });
  await page.getByRole('table', { name: 'Runs' }).waitFor();
  const started = performance.now();
  await page.goto(`${url}/console/runs/${runId}?tab=events`);
  await page.getByText(`${EVENTS.toLocaleString('en')} events`, { exact: true }).waitFor();
  await page.getByRole('button', { name: /run\.started/ }).waitFor();
  const openedMs = performance.now() - started;
  const frames = await scroll(page);
  await page.context().close();
  return { openedMs, frames };
}

/** Scrolls as a wheel does, a step with each frame, and notes how long the frames took. */
async function scroll(page: Page): Promise<number[]> {
  await page.getByRole('region', { name: 'Events' }).scrollIntoViewIfNeeded();
  return page.evaluate<number[]>(`(async () => {
    const box = document.querySelector('section[aria-label=Events]');
    const frames = [];
    const frame = () => new Promise(requestAnimationFrame);
    // Whatever the page still did for its opening is no part of this.
    for (let count = 0; count < 30; count++) await frame();
    let before = await frame();
    for (let count = 0; count < ${SCROLLS}; count++) {
      box.scrollTop += count % 3 === 2 ? 9000 : 240;
      const now = await frame();
      frames.push(now - before);
      before = now;
    }
    return frames;
  })()`);
}

/** Writes a long run as the host writes it: nodes one after the other, each of which says much. */
function plant(file: string): string {
  const at = Date.now() - 3_600_000;
  const runId = `${firstIdAt(at, RUN_PREFIX)}0000000bench`;
  const events: StoredEvent[] = [];
  const add = (type: string, payload: object, nodeId?: string): void => {
    const sequence = events.length;
    const timestamp = new Date(at + sequence * 20).toISOString();
    const event = { eventId: `${runId}-${sequence}`, runId, sequence, timestamp, type, payload, nodeId };
    events.push({ sequence, type, hidden: null, body: JSON.stringify(event) });
  };
  add('run.started', { workflowId: WORKFLOW, inputs: {} });
  const chunks = (EVENTS - 2 - 2 * NODES) / NODES;
  for (let index = 0; index < NODES; index++) {
    const nodeId = `step-${index}`;
    add('node.started', { nodeId, typeId: 'core.noop', attempt: 0 }, nodeId);
    // The last node makes up for what the others leave over.
    const end = index === NODES - 1 ? EVENTS - 2 : events.length + Math.floor(chunks);
    while (events.length < end) {
      add('output.chunk', { nodeId, runId, chunk: 'a few words, as models say them. ', isLast: false }, nodeId);
    }
    add('node.completed', { nodeId, outputs: { text: 'done' } }, nodeId);
  }
  add('run.completed', { outputs: {} });
  const database = new DatabaseSync(file);
  const write = writerFor(database);
  database.exec('BEGIN IMMEDIATE');
  const place = { run_id: runId, workflow_owner: 'alpha', workflow_id: WORKFLOW, sequence: events.length - 1 };
  write(insertRun({ ...RUN, ...place, created_at: at, updated_at: at, ended_at: at + events.length * 20 }));
  for (const rows of insertEvents(runId, events)) write(rows);
  database.exec('COMMIT');
  database.close();
  return runId;
}

import { Agent, request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshFolder, readStore } from '../support/database.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { resolve } from '../support/interrupts.ts';
import { until } from '../support/until.ts';

/**
 * A run that waits costs a few rows and nothing else: no timer, no lease, no memory. Thousands of them are made, left
 * alone, taken through a restart and answered.
 */

const RUNS = Number(process.env.CAPSTAN_WAITING_RUNS ?? '3000');
/** Runs that wait before the others: they fill the caches, which are bounded. */
const BEFORE = 2_000;
const AT_ONCE = 200;
/** Ten seconds on a machine that has nothing else to do. */
const START_MS = 180_000;
/** Less than a run's id and a folded state take. */
const BYTES_PER_RUN = 1_024;

describe(`${RUNS} runs that wait`, () => {
  const folder = freshFolder();
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  let host: TestHost;
  let runIds: string[];
  let heapBefore = 0;

  beforeAll(async () => {
    host = await startTestHost('sqlite', undefined, { dataFolder: folder.path, requestsPerSecond: 1_000_000 });
    await startRuns(BEFORE);
    await allWait(BEFORE);
    heapBefore = heapInUse();
    runIds = await startRuns(RUNS);
    await allWait(RUNS + BEFORE);
  }, START_MS);
  afterAll(async () => {
    agent.destroy();
    await host.stop();
    folder.remove();
  });

  /** Starts runs over connections that are kept. */
  async function startRuns(count: number): Promise<string[]> {
    const started: string[] = [];
    let left = count;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left-- > 0)
          started.push(JSON.parse(await post('/v1/runs', { workflowId: 'conformance-approval' })).runId);
      }),
    );
    return started;
  }

  function post(path: string, body: object): Promise<string> {
    const headers = { authorization: `Bearer ${KEYS.editor.key}`, 'content-type': 'application/json' };
    return new Promise((answered, failed) => {
      const call = request(host.url + path, { method: 'POST', agent, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => answered(text));
      });
      call.on('error', failed).end(JSON.stringify(body));
    });
  }

  /** Settles when the host has nothing in hand. */
  async function idle(): Promise<void> {
    while ((await gauge(host, 'capstan_work_in_hand')) > 0);
  }

  const count = async (of: string): Promise<number> =>
    Number((await readStore<{ count: number }>(host.config, `SELECT COUNT(*) AS count FROM ${of}`))[0]!.count);
  const counted = (of: string, wanted: number): Promise<number> =>
    until(
      () => count(of),
      (found) => found === wanted,
    );
  async function allWait(runs: number): Promise<void> {
    await counted(`runs WHERE status = 'waiting-approval'`, runs);
    await idle();
  }

  it('all wait', async () => {
    expect(new Set(runIds).size).toBe(RUNS);
    expect(await count(`runs WHERE status = 'waiting-approval'`)).toBe(RUNS + BEFORE);
    expect(await count(`interrupts WHERE state = 'open'`)).toBe(RUNS + BEFORE);
  });

  it('hold no lease, and nothing is due before the day they may be given up', async () => {
    const soon = Date.now() + 24 * 60 * 60 * 1_000;
    expect(await count(`work WHERE kind = 'run' AND owner IS NOT NULL`)).toBe(0);
    expect(await count(`work WHERE kind = 'run' AND due_at < ${soon}`)).toBe(0);
    expect(await count(`work WHERE kind = 'run'`)).toBe(RUNS + BEFORE);
  });

  it('keep nothing busy', async () => {
    // The host's own housekeeping may have a moment's work in hand.
    await idle();
    expect(await gauge(host, 'capstan_runs_followed')).toBe(0);
  });

  it('take no memory to speak of', async () => {
    expect(heapInUse() - heapBefore).toBeLessThan(BYTES_PER_RUN * RUNS);
  });

  it('wait on through a restart, which reads none of them', async () => {
    await host.stop();
    host = await host.another();
    await idle();
    expect(await count(`runs WHERE status = 'waiting-approval'`)).toBe(RUNS + BEFORE);
    expect(await count(`events WHERE type = 'run.resumed'`)).toBe(0);
  });

  it('go on, whichever is answered', async () => {
    const api = host.as('editor');
    for (const index of [0, 1, RUNS / 2, RUNS - 1]) {
      const runId = runIds[index]!;
      expect((await resolve(api, runId, 'gate', { action: 'accept' })).status).toBe(200);
      expect((await api.ended(runId)).status).toBe('completed');
    }
  });

  it('go on all together', async () => {
    const answered = runIds.slice(100, 1_100);
    const resumeValue = { action: 'accept' };
    await Promise.all(answered.map((runId) => post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue })));
    await counted(`runs WHERE status = 'completed'`, 1_004);
  });

  it('are found in the inbox, page by page', async () => {
    const api = host.as('editor');
    const { body } = await api.get('/v1/host/capstan/inbox?limit=200');
    expect(body.items).toHaveLength(200);
    const next = await api.get(`/v1/host/capstan/inbox?limit=200&cursor=${encodeURIComponent(body.nextCursor)}`);
    const ids = [...body.items, ...next.body.items].map(({ id }) => id);
    expect(new Set(ids).size).toBe(400);
  });
});

async function gauge({ anonymous }: TestHost, name: string): Promise<number> {
  const { text } = await anonymous.get('/metrics');
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)![1]);
}

/** Bytes that are still needed by somebody: host and test share a process, so rubbish is cleared away first. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  const clearAway = runInNewContext('gc') as () => void;
  clearAway();
  return process.memoryUsage().heapUsed;
}

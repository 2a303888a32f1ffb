import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { copiesOf, readStore, writeStore } from '../support/database.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost } from '../support/host.ts';
import { HurriedClock } from '../support/manual-clock.ts';
import { onEachStore, onStoresAtOnce, storesFor } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Heartbeats over the wire: a tick happens once, a change starts one run, and nothing happens where nothing changed. */

type Body = Answer['body'];

const HEARTBEATS = '/v1/host/capstan/heartbeats';
const DAY_SEC = 86_400;

const plain = workflow([node('a')]);

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function create(api: Api, body: object): Promise<Body> {
  const answer = await api.post(HEARTBEATS, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

/** Makes a heartbeat, to be taken away after the test. */
async function heartbeat(api: Api, body: object): Promise<Body> {
  const made = await create(api, body);
  cleanUps.push(() => api.request('DELETE', `${HEARTBEATS}/${made.id}`));
  return made;
}

const read = async (api: Api, id: string): Promise<Body> => (await api.get(`${HEARTBEATS}/${id}`)).body;
const eventsOf = async (api: Api, id: string): Promise<Body[]> =>
  (await api.get(`${HEARTBEATS}/${id}/events?limit=200`)).body.items.toReversed();
const runsOf = async (api: Api, id: string): Promise<Body[]> =>
  (await api.get(`/v1/host/capstan/runs?limit=200&tag=heartbeat:${id}`)).body.items;
const isTick = ({ type }: Body): boolean => type === 'heartbeat.evaluated';
const ticked = (api: Api, id: string, times: number): Promise<Body[]> =>
  until(
    () => eventsOf(api, id),
    (events) => events.filter(isTick).length >= times,
  );

/** A page whose text a test decides. */
class Page {
  body: unknown = { unread: 0 };
  delayMs = 0;
  readonly #server: Server = createServer((_request, response) => {
    setTimeout(() => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(this.body));
    }, this.delayMs);
  });

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** A page for the scenarios of a host, which knows the workflow that they start. */
function observedPage(api: () => Api): Page {
  const page = new Page();
  beforeAll(async () => {
    await page.open();
    await register(api(), plain);
  });
  afterAll(() => page.close());
  return page;
}

onEachStore('a heartbeat', (host) => {
  const api = (): Api => host().as('editor');
  const page = observedPage(api);

  it('looks at runs and at stored values, too', async () => {
    const other = workflow([node('a')]);
    await register(api(), other);
    const { id } = await heartbeat(api(), { intervalSec: DAY_SEC, observe: { runs: { workflowId: other.id } } });
    const [, changed] = await ticked(api(), id, 1);
    expect(changed.payload).toEqual({ heartbeatId: id, from: {}, to: { count: 0 } });
    const kv = await heartbeat(api(), {
      intervalSec: DAY_SEC,
      observe: { kv: { namespace: 'none', key: unique('key') } },
    });
    page.body = { text: 'by others' };
    const read = await heartbeat(api(), { intervalSec: DAY_SEC, observe: { http: { url: page.url } } });
    const [, digest] = await ticked(api(), read.id, 1);
    expect(digest.payload.to).toEqual({ status: 200, digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const [, missing] = await ticked(api(), kv.id, 1);
    expect(missing.payload).toMatchObject({ to: { found: false } });
  });

  it('says what is wrong when it cannot look, or cannot start', async () => {
    const refused = await heartbeat(api(), { intervalSec: DAY_SEC, observe: { http: { url: 'http://10.0.0.1/' } } });
    await ticked(api(), refused.id, 1);
    expect(await read(api(), refused.id)).toMatchObject({ lastStatus: 'error', lastError: expect.any(String) });
    const gone = workflow([node('a')]);
    await register(api(), gone);
    const request = { intervalSec: 1, observe: { runs: { workflowId: gone.id, status: 'failed' } } };
    page.body = { n: 1 };
    const starting = await heartbeat(api(), { ...request, workflowId: gone.id, when: 'to.count > 5' });
    await ticked(api(), starting.id, 1);
    expect(await read(api(), starting.id)).toMatchObject({ lastStatus: 'ok', lastState: { count: 0 } });
  });

  it.each<[string, string, object]>([
    ['nothing to look at', 'observe', { intervalSec: 1 }],
    ['no interval', 'intervalSec', { observe: { runs: {} } }],
    ['two things to look at', 'observe', { intervalSec: 1, observe: { runs: {}, kv: { namespace: 'a', key: 'b' } } }],
    ['an expression that is none', 'state', { intervalSec: 1, observe: { runs: {} }, state: 'observed.' }],
    ['a workflow that is not there', 'workflowId', { intervalSec: 1, observe: { runs: {} }, workflowId: 'nowhere' }],
  ])('is refused with %s', async (_what, field, body) => {
    const answer = await api().post(HEARTBEATS, body);
    expectRefusal(answer, 400, 'validation_error');
    expect(answer.text).toContain(field);
  });

  it('is seen by its tenant alone, and changed by those who may', async () => {
    const { id } = await heartbeat(api(), { intervalSec: DAY_SEC, observe: { runs: {} } });
    for (const path of [`${HEARTBEATS}/${id}`, `${HEARTBEATS}/${id}/events`]) {
      expect((await host().as('other').get(path)).status).toBe(404);
      expect((await host().as('workspace').get(path)).status).toBe(404);
      expect((await host().as('viewer').get(path)).status).toBe(200);
    }
    expect((await host().as('other').request('DELETE', `${HEARTBEATS}/${id}`)).status).toBe(404);
    expectRefusal(await host().as('viewer').request('DELETE', `${HEARTBEATS}/${id}`), 403, 'forbidden');
    expectRefusal(await host().as('viewer').post(HEARTBEATS, {}), 403, 'forbidden');
    const all = (await api().get(HEARTBEATS)).body.items;
    expect(all[0].id).toBe(id);
  });

  it('looks no more while it is paused, and at once when it goes on', async () => {
    const { id } = await heartbeat(api(), { intervalSec: DAY_SEC, observe: { runs: {} } });
    await ticked(api(), id, 1);
    const headers = { 'idempotency-key': unique('key') };
    const paused = await api().post(`${HEARTBEATS}/${id}:pause`, undefined, headers);
    expect([paused.status, paused.body.nextTickAt]).toEqual([200, undefined]);
    expect((await api().post(`${HEARTBEATS}/${id}:pause`, undefined, headers)).body).toEqual(paused.body);
    expect((await api().post(`${HEARTBEATS}/${id}:resume`)).body.nextTickAt).toEqual(expect.any(String));
    await ticked(api(), id, 2);
    expectRefusal(await host().as('viewer').post(`${HEARTBEATS}/${id}:pause`), 403, 'forbidden');
    expect((await host().as('other').post(`${HEARTBEATS}/${id}:pause`)).status).toBe(404);
  });

  it('looks no more once it is removed', async () => {
    const { id } = await heartbeat(api(), { intervalSec: 1, observe: { runs: {} } });
    await ticked(api(), id, 1);
    expect((await api().request('DELETE', `${HEARTBEATS}/${id}`)).status).toBe(204);
    expect((await api().get(`${HEARTBEATS}/${id}`)).status).toBe(404);
    expect((await api().get(`${HEARTBEATS}/${id}/events`)).status).toBe(404);
  });

  describe('as suites try it', () => {
    const tick = async (body: object): Promise<Body> => (await api().post('/v1/host/sample/heartbeat/tick', body)).body;

    it('tells every tick once, and a change once', async () => {
      const heartbeatId = unique('hb');
      const first = await tick({ heartbeatId, observedState: { unread: 0 } });
      expect(first).toEqual({
        evaluated: [{ heartbeatId, status: 'ok', changed: true }],
        stateChanged: [{ heartbeatId, from: {}, to: { unread: 0 } }],
        enqueuedRuns: 1,
      });
      const unchanged = {
        evaluated: [{ heartbeatId, status: 'ok', changed: false }],
        stateChanged: [],
        enqueuedRuns: 0,
      };
      expect(await tick({ heartbeatId, observedState: { unread: 0 } })).toEqual(unchanged);
      expect(await tick({ heartbeatId, observedState: { unread: 3 } })).toMatchObject({ enqueuedRuns: 1 });
      expect(await tick({ heartbeatId, observedState: { unread: 3 } })).toEqual(unchanged);
    });
  });
});

onStoresAtOnce('a heartbeat that is due', (host) => {
  const api = (): Api => host().as('editor');
  const page = observedPage(api);

  it('looks at once, tells a change and starts a run for it, and is quiet while nothing changes', async () => {
    page.body = { unread: 0, at: 1 };
    const { id } = await create(api(), {
      intervalSec: 0,
      observe: { http: { url: page.url } },
      state: '{"unread": observed.body.unread}',
      when: 'to.unread > 0',
      workflowId: plain.id,
      inputs: { reason: 'mail' },
    });
    await ticked(api(), id, 1);
    page.body = { unread: 3, at: 2 };
    const [run] = await until(
      () => runsOf(api(), id),
      (runs) => runs.length > 0,
    );
    page.body = { unread: 3, at: 3 };
    const events = await ticked(api(), id, 3);
    expect(events.filter(({ type }) => type === 'heartbeat.stateChanged').map(({ payload }) => payload)).toEqual([
      { heartbeatId: id, from: {}, to: { unread: 0 } },
      { heartbeatId: id, from: { unread: 0 }, to: { unread: 3 } },
    ]);
    for (const { type, payload } of events) {
      if (type !== 'heartbeat.evaluated') continue;
      expect(payload).toEqual({ heartbeatId: id, status: 'ok', changed: expect.any(Boolean) });
    }
    expect(await runsOf(api(), id)).toHaveLength(1);
    const { body } = await api().get(`/v1/runs/${run.runId}`);
    expect(body.inputs).toEqual({ reason: 'mail', heartbeat: { from: { unread: 0 }, to: { unread: 3 } } });
    expect(body.metadata).toMatchObject({ heartbeatId: id });
    expect(await read(api(), id)).toMatchObject({
      intervalSec: 1,
      lastStatus: 'ok',
      lastState: { unread: 3 },
      lastRunId: run.runId,
      nextTickAt: expect.any(String),
    });
  });
});

it('a look that takes too long is given up when discovery says, as suites try it and in earnest', async () => {
  const page = new Page();
  page.delayMs = 30_000;
  await page.open();
  const clock = new HurriedClock();
  const host = await startTestHost('sqlite', undefined, {}, clock);
  cleanUps.push(async () => {
    page.close();
    await host.stop();
  });
  const api = host.as('editor');
  const { heartbeat: block } = (await api.get('/.well-known/openwop')).body;
  expect(block).toEqual({ supported: true, minIntervalSec: 1, maxRuntimeMs: 5_000 });
  const heartbeatId = unique('hb');
  const slow = { heartbeatId, observedState: { a: 1 }, simulateSlowMs: block.maxRuntimeMs + 1_000 };
  const trial = api.post('/v1/host/sample/heartbeat/tick', slow);
  const { id } = await heartbeat(api, { intervalSec: DAY_SEC, observe: { http: { url: page.url } } });
  const [event, ...others] = await clock.hurry(ticked(api, id, 1));
  expect(event.payload).toEqual({ heartbeatId: id, status: 'timeout', changed: false });
  expect(others).toEqual([]);
  expect((await read(api, id)).lastState).toBeUndefined();
  expect((await clock.hurry(trial)).body).toEqual({
    evaluated: [{ heartbeatId, status: 'timeout', changed: false }],
    stateChanged: [],
    enqueuedRuns: 0,
  });
});

describe.each(storesFor('the seam of heartbeats'))('the seam of heartbeats, on %s', (kind) => {
  it('is not there without its switch', async () => {
    const host = await startTestHost(kind, inject('postgresUrl'), { conformance: false });
    const answer = await host.as('editor').post('/v1/host/sample/heartbeat/tick', { heartbeatId: 'a' });
    await host.stop();
    expect(answer.status).toBe(404);
  });
});

describe('many heartbeats', () => {
  it('that are due at once tick once each and start one run each, on two hosts', async () => {
    const COUNT = 300;
    const one = await startTestHost('postgres', inject('postgresUrl'));
    const two = await one.another();
    cleanUps.push(async () => {
      await two.stop();
      await one.stop();
    });
    const editor = one.as('editor');
    await register(editor, plain);
    const observe = { kv: { namespace: 'none', key: 'none' } };
    const { body } = await editor.post(HEARTBEATS, { intervalSec: DAY_SEC, observe, workflowId: plain.id });
    await ticked(editor, body.id, 1);
    const due = Date.now() + 500;
    await writeStore(one.config, [
      `UPDATE heartbeats SET next_tick_at = ${due}, state = '{"something": "else"}'`,
      copiesOf('heartbeats', 'heartbeat_id', 'hb-', COUNT),
      copiesOf('work', 'work_id', 'hb-', COUNT),
      `UPDATE work SET due_at = ${due} WHERE kind = 'heartbeat'`,
    ]);
    const left = `SELECT COUNT(*)::int AS left FROM heartbeats WHERE next_tick_at = ${due}`;
    await until(
      () => readStore<{ left: number }>(one.config, left),
      ([now]) => now!.left === 0,
    );
    const counted = `SELECT COUNT(*)::int AS ticks, COUNT(DISTINCT heartbeat_id)::int AS heartbeats,
      (SELECT COUNT(*)::int FROM run_tags) AS runs FROM heartbeat_events WHERE type = 'heartbeat.evaluated'`;
    const [seen] = await readStore(one.config, counted);
    // One tick and one run are from before.
    expect(seen).toEqual({ ticks: COUNT + 1, heartbeats: COUNT, runs: COUNT + 1 });
  });
});

import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { freshFolder, readStore, writeStore } from '../support/database.ts';
import { line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startHostWith, startTestHost, type TestHost } from '../support/host.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { onEachStore, onOneStore, STORES } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';
import { until } from '../support/until.ts';

/** durability.md 6.1 to 6.3: runs are kept for a known time, and are gone afterwards with everything that was theirs. */

const TABLES_OF_RUNS = ['runs', 'run_tags', 'events', 'effects', 'interrupts', 'artifacts'];
const DAY_S = 24 * 60 * 60;

/** Rows that are about a run, by table. */
async function rowsAbout({ config }: TestHost, runId: string): Promise<Record<string, number>> {
  const counts = await Promise.all(
    TABLES_OF_RUNS.map(async (table): Promise<[string, number]> => {
      const [row] = await readStore<{ count: number | string }>(
        config,
        `SELECT COUNT(*) AS count FROM ${table} WHERE run_id = '${runId}'`,
      );
      return [table, Number(row!.count)];
    }),
  );
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

onEachStore('a run whose time is up', (host) => {
  const api = (): Api => host().as('editor');
  const expire = (runId: string, by: Api = api()): Promise<Answer> =>
    by.post(`/v1/host/sample/test/force-expire/${runId}`);
  const expired = async (): Promise<string> => {
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    expect((await expire(runId)).status).toBe(204);
    return runId;
  };

  it('is gone, and since when', async () => {
    const before = Date.now() - 5_000;
    const runId = await expired();
    const answer = await api().get(`/v1/runs/${runId}`);
    expectRefusal(answer, 410, 'run_expired');
    const at = Date.parse(answer.body.details.expiredAt);
    expect(at).toBeGreaterThan(before);
    expect(at).toBeLessThan(Date.now() + 5_000);
    expect(Date.parse(answer.body.details.retentionBoundary)).toBeLessThan(at - 29 * DAY_S * 1_000);
  });

  it('is gone for those who were just about to read its log', async () => {
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    // Whoever has read the row of the run and comes to its events only now finds none.
    await writeStore(host().config, [
      `DELETE FROM events WHERE run_id = '${runId}'`,
      `INSERT INTO expired_runs (run_id, tenant, workspace, expired_at, events_left)
       SELECT run_id, tenant, workspace, ended_at, 0 FROM runs WHERE run_id = '${runId}'`,
    ]);
    expectRefusal(await api().get(`/v1/runs/${runId}`), 410, 'run_expired');
    expectRefusal(await api().get(`/v1/host/capstan/runs/${runId}/state?sequence=1`), 410, 'run_expired');
  });

  it('is gone whatever is asked of it, and nothing comes of asking', async () => {
    const runId = await expired();
    const other = await api().run('conformance-noop');
    const path = `/v1/runs/${runId}`;
    for (const asked of [
      path,
      `${path}/events`,
      `${path}/events/poll`,
      `${path}:diff?against=${other}`,
      `${path}/ancestry`,
      `${path}/debug-bundle`,
      `${path}/artifacts/any`,
      `/v1/host/capstan/runs/${runId}/state?sequence=0`,
    ]) {
      expectRefusal(await api().get(asked), 410, 'run_expired');
    }
    const key = { 'idempotency-key': unique('key') };
    for (const done of [`${path}/cancel`, `${path}:pause`, `${path}:resume`]) {
      expectRefusal(await api().post(done, undefined, key), 410, 'run_expired');
      expectRefusal(await api().post(done, undefined, key), 410, 'run_expired');
    }
    const forked = await api().post(`${path}:fork`, { mode: 'replay', fromSeq: 0 });
    expectRefusal(forked, 410, 'run_expired');
    expect(forked.body.details).toMatchObject({
      sourceRunId: runId,
      fromSeq: 0,
      retentionBoundary: expect.any(String),
    });
    const resolved = await api().post(`${path}/interrupts/gate`, { resumeValue: { action: 'accept' } });
    expectRefusal(resolved, 410, 'run_expired');
    expect(await rowsAbout(host(), runId)).toEqual({});
  });

  it('is not found for those who could not see it, and nobody can compare with it', async () => {
    const runId = await expired();
    expectRefusal(await host().as('other').get(`/v1/runs/${runId}`), 404, 'not_found');
    expectRefusal(await host().as('workspace').get(`/v1/runs/${runId}`), 404, 'not_found');
    expectRefusal(await host().as('nothing').get(`/v1/runs/${runId}`), 403, 'forbidden');
    expectRefusal(await host().anonymous.get(`/v1/runs/${runId}`), 401, 'unauthenticated');
    const other = await api().run('conformance-noop');
    expectRefusal(await api().get(`/v1/runs/${other}:diff?against=${runId}`), 404, 'not_found');
  });

  it('takes everything of it along, and leaves what others have', async () => {
    const definition = workflow(
      [
        node('effect', 'core.conformance.side-effect'),
        node('gate', 'core.approvalGate', { config: { title: 'Go on?' } }),
      ],
      line('effect', 'gate'),
    );
    await register(api(), definition);
    const tags = [unique('tag'), unique('tag')];
    const [runId, other] = [await api().run(definition.id, { tags }), await api().run(definition.id, { tags })];
    for (const each of [runId, other]) {
      await api().until(each, ({ status }) => status === 'waiting-approval');
      await api().post(`/v1/runs/${each}/interrupts/gate`, { resumeValue: { action: 'accept' } });
      await api().ended(each);
    }
    const kept = await rowsAbout(host(), other);
    expect(Object.keys(kept).sort()).toEqual(['effects', 'events', 'interrupts', 'run_tags', 'runs']);
    expect(await rowsAbout(host(), runId)).toEqual(kept);
    await expire(runId);
    expect(await rowsAbout(host(), runId)).toEqual({});
    expect(await rowsAbout(host(), other)).toEqual(kept);
    const { body } = await api().get(`/v1/host/capstan/runs?tag=${tags[0]}`);
    expect(body.items.map((run: { runId: string }) => run.runId)).toEqual([other]);
  });

  it('stays in the audit log', async () => {
    const runId = await expired();
    const audit = async (): Promise<Answer['body'][]> =>
      (await host().as('owner').get('/v1/host/capstan/audit?action=run.create')).body.items;
    expect((await audit()).filter(({ target }) => target === runId)).toHaveLength(1);
  });

  it('may be one that was still going on, where a suite asks for it', async () => {
    const runId = await api().run('conformance-approval');
    await api().until(runId, ({ status }) => status === 'waiting-approval');
    expect((await expire(runId)).status).toBe(204);
    expectRefusal(await api().get(`/v1/runs/${runId}`), 410, 'run_expired');
    expect(await rowsAbout(host(), runId)).toEqual({});
    const { body } = await api().get('/v1/host/capstan/inbox');
    expect(body.items.filter((item: { runId?: string }) => item.runId === runId)).toEqual([]);
  });

  it('is cleared away before its time only by those who may cancel it', async () => {
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    expectRefusal(await expire(runId, host().anonymous), 401, 'unauthenticated');
    expectRefusal(await expire(runId, host().as('viewer')), 403, 'forbidden');
    expectRefusal(await expire(runId, host().as('other')), 404, 'not_found');
    expectRefusal(await expire('run-nobody-knows'), 404, 'not_found');
    expect((await api().get(`/v1/runs/${runId}`)).status).toBe(200);
    expect((await expire(runId)).status).toBe(204);
    expectRefusal(await expire(runId), 410, 'run_expired');
  });
});

/** Asks until the answer is the one that is waited for. */
async function untilStatus(api: Api, path: string, status: number): Promise<void> {
  await expect.poll(async () => (await api.get(path)).status, { timeout: 20_000 }).toBe(status);
}

describe.each(STORES)('clearing away, on %s', (kind) => {
  const folder = freshFolder();
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder.path });
  });
  afterAll(async () => {
    await host.stop();
    folder.remove();
  });

  /** Starts again with another time to keep runs, which makes it look at once. */
  async function restart(retentionMs: number, retentionOf = new Map<string, number>()): Promise<Api> {
    await host.stop();
    host = await host.another({ retentionMs, retentionOf });
    return host.as('editor');
  }

  it('is done with all runs that ended long enough ago, however many and however long their logs', async () => {
    const api = host.as('test');
    const tokens = Array.from({ length: 2_500 }, (_, index) => `${index}`);
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens } } };
    const long = await api.run('conformance-stream-text', { configurable });
    const short = await Promise.all(Array.from({ length: 120 }, () => api.run('conformance-noop')));
    const waiting = await api.run('conformance-approval');
    for (const runId of [long, ...short]) await api.ended(runId);
    await api.until(waiting, ({ status }) => status === 'waiting-approval');
    await restart(0);
    for (const runId of [long, ...short]) await untilStatus(host.as('test'), `/v1/runs/${runId}`, 410);
    const left = (): Promise<unknown> =>
      readStore(host.config, 'SELECT run_id FROM expired_runs WHERE events_left > 0');
    await expect.poll(left, { timeout: 20_000 }).toEqual([]);
    for (const runId of [long, short[0]!, short.at(-1)!]) expect(await rowsAbout(host, runId)).toEqual({});
    expect((await host.as('test').get(`/v1/runs/${waiting}`)).body.status).toBe('waiting-approval');
    const { body } = await host.as('test').get('/v1/host/capstan/runs');
    expect(body.items.map((run: { runId: string }) => run.runId)).toEqual([waiting]);
    await host.as('test').post(`/v1/runs/${waiting}/cancel`);
  });

  it('keeps what ended lately', async () => {
    const runId = await host.as('editor').run('conformance-noop');
    await host.as('editor').ended(runId);
    const api = await restart(7 * DAY_S * 1_000);
    const marker = await api.run('conformance-noop');
    await api.ended(marker);
    expect((await api.get(`/v1/runs/${runId}`)).status).toBe(200);
    expect((await rowsAbout(host, runId)).events).toBeGreaterThan(0);
  });

  it('keeps runs of some tenants for another time', async () => {
    const started = {
      alpha: await host.as('editor').run('conformance-noop'),
      beta: await host.as('other').run('conformance-noop'),
    };
    await host.as('editor').ended(started.alpha);
    await host.as('other').ended(started.beta);
    await restart(7 * DAY_S * 1_000, new Map([['beta', 0]]));
    await untilStatus(host.as('other'), `/v1/runs/${started.beta}`, 410);
    expect((await host.as('editor').get(`/v1/runs/${started.alpha}`)).status).toBe(200);
    await restart(7 * DAY_S * 1_000);
    const marker = await host.as('other').run('conformance-noop');
    await host.as('other').ended(marker);
    await restart(0, new Map([['alpha', 7 * DAY_S * 1_000]]));
    await untilStatus(host.as('other'), `/v1/runs/${marker}`, 410);
    expect((await host.as('editor').get(`/v1/runs/${started.alpha}`)).status).toBe(200);
  });

  it('keeps what a run has started as long as that run', async () => {
    const api = host.as('editor');
    const child = await register(api, workflow([node('a')]));
    const call = node('call', 'core.subWorkflow', { config: { workflowId: child, waitForCompletion: true } });
    const gate = node('gate', 'core.approvalGate', { config: { title: 'Go on?' } });
    const parent = await register(api, workflow([call, gate], line('call', 'gate')));
    const runId = await api.run(parent);
    const { childRuns } = await api.until(runId, ({ status }) => status === 'waiting-approval');
    const childRunId = childRuns[0].runId;
    const old = await api.run('conformance-noop');
    await api.ended(old);
    const again = await restart(0);
    await untilStatus(again, `/v1/runs/${old}`, 410);
    expect((await again.get(`/v1/runs/${childRunId}`)).body.status).toBe('completed');
    await again.post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
    // It may be cleared away as soon as it has ended.
    await again.until(runId, ({ status, error }) => status === 'completed' || error === 'run_expired');
    const last = await restart(0);
    for (const each of [runId, childRunId]) await untilStatus(last, `/v1/runs/${each}`, 410);
  });
});

describe('the time that runs are kept', () => {
  it('counts from their end, and that there was one is remembered for a year', async () => {
    const clock = new ManualClock();
    const host = await startTestHost('sqlite', inject('postgresUrl'), {}, clock);
    const days = (count: number): void => clock.advance(count * DAY_S * 1_000);
    try {
      const api = host.as('editor');
      const first = await api.run('conformance-noop');
      await api.ended(first);
      days(2);
      const second = await api.run('conformance-noop');
      await api.ended(second);
      days(28.5);
      await untilStatus(api, `/v1/runs/${first}`, 410);
      expect((await api.get(`/v1/runs/${second}`)).status).toBe(200);
      days(2);
      await untilStatus(api, `/v1/runs/${second}`, 410);
      days(362);
      expect((await api.get(`/v1/runs/${first}`)).status).toBe(410);
      days(2);
      await untilStatus(api, `/v1/runs/${first}`, 404);
      expect((await api.get(`/v1/runs/${second}`)).status).toBe(410);
    } finally {
      await host.stop();
    }
  });
});

onOneStore(
  'a host that may be run for others',
  (host) => {
    const api = (): Api => host().as('editor');
    const claim = async (): Promise<Answer['body']> => (await api().get('/.well-known/openwop')).body.production;

    it('says what can be counted on, and no more', async () => {
      expect(await claim()).toEqual({
        supported: true,
        backpressure: { supported: true, inflightCap: 4, retryAfterSeconds: 1 },
        retention: { supported: true, minWindowSeconds: 30 * DAY_S, testForceExpire: true },
        debugBundle: { supported: true, truncationMetadata: true },
      });
    });

    it('sends away whom it has no room for, with the advertised time to come back, and then takes them', async () => {
      const { inflightCap, retryAfterSeconds } = (await claim()).backpressure;
      const streams: Stream[] = [];
      for (let count = 0; count < inflightCap; count++) {
        const runId = await api().run('conformance-delay', { inputs: { delayMs: 60_000 } });
        streams.push(await Stream.open(`${host().url}/v1/runs/${runId}/events`, KEYS.editor.key));
      }
      const refused = await api().post('/v1/runs', { workflowId: 'conformance-noop' });
      expectRefusal(refused, 503, 'service_unavailable');
      expect(refused.headers.get('retry-after')).toBe(String(retryAfterSeconds));
      expect(refused.body.details).toEqual({ retryAfter: retryAfterSeconds });
      const probes = await Promise.all(
        Array.from({ length: inflightCap + 2 }, () => host().anonymous.get('/.well-known/openwop')),
      );
      expect(probes.map(({ status }) => status)).toEqual(probes.map(() => 200));
      streams[0]!.drop();
      await until(
        () => api().post('/v1/runs', { workflowId: 'conformance-noop' }),
        ({ status }) => status === 201,
      );
      for (const stream of streams) stream.drop();
    });
  },
  { inFlightMax: 4 },
);

describe('without the conformance switch', () => {
  it('nobody can clear a run away before its time', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { conformance: false });
    try {
      const api = host.as('owner');
      const { body } = await api.get('/.well-known/openwop');
      expect(body.production.retention.testForceExpire).toBe(false);
      const runId = await api.run(await register(api, workflow([node('a')])));
      expectRefusal(await api.post(`/v1/host/sample/test/force-expire/${runId}`), 404, 'not_found');
      expect((await api.get(`/v1/runs/${runId}`)).status).toBe(200);
    } finally {
      await host.stop();
    }
  });
});

describe('the log of a host', () => {
  it('says what became of every run, for whom, and which requests were about it', async () => {
    const folder = freshFolder();
    const host = await startHostWith({ CAPSTAN_DATA: folder.path, CAPSTAN_LOG: 'info' });
    try {
      const api = host.as('editor');
      const runId = await api.run('conformance-failure');
      const { error } = await api.ended(runId);
      await api.get('/v1/runs/my-own-name-for-it');
      await host.stop();
      const lines = host.output().split('\n');
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      const { tenant, ...ended } = entries.find(({ msg }) => msg === 'run ended')!;
      expect(ended).toMatchObject({ runId, status: 'failed', errorCode: error.code });
      const asked = entries.filter((entry) => entry.msg === 'answered' && entry.runId === runId);
      expect(asked.length).toBeGreaterThan(0);
      for (const entry of asked) expect(entry).toMatchObject({ requestId: expect.any(String), tenant });
      expect(host.output()).not.toContain('my-own-name-for-it');
    } finally {
      await host.stop();
      folder.remove();
    }
  });
});

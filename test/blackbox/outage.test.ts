import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { migratedDatabase } from '../support/database.ts';
import { line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectEnvelope } from '../support/envelope.ts';
import { fill, operationsOf } from '../support/operations.ts';
import { type HostProcess, spawnHost } from '../support/process.ts';
import { DatabaseProxy } from '../support/proxy.ts';

/** A database that goes away for a while costs time, and nothing else. */

/** The grace that a host gives its steps, and as much again for a machine that is busy. */
const STOP_MAX_MS = 30_000;

const steps = Array.from({ length: 8 }, (_, index) => `s${index}`);
const stepwise = workflow(
  steps.map((id) => node(id, 'core.delay', { config: { ms: 60 } })),
  line(...steps),
);

describe('a host whose PostgreSQL goes away', () => {
  let proxy: DatabaseProxy;
  let host: HostProcess;
  let id: string;
  const api = (): Api => host.as('editor');
  beforeAll(async () => {
    proxy = await DatabaseProxy.open(await migratedDatabase(inject('postgresUrl')));
    host = await spawnHost({ DATABASE_URL: proxy.url, CAPSTAN_LEASE_MS: '2000', CAPSTAN_LOG: 'silent' });
    id = await register(api(), stepwise);
  });
  afterAll(async () => {
    host.signal('SIGKILL');
    await host.exit;
    await proxy.cut().catch(() => {});
  });
  beforeEach(async () => {
    await untilServed(() => api().get('/readyz'));
  });

  async function expectSound(runId: string): Promise<void> {
    expect((await api().ended(runId)).status).toBe('completed');
    const events = await api().events(runId);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'node.completed').map(({ nodeId }) => nodeId)).toEqual(steps);
    expect(events.at(-1).type).toBe('run.completed');
  }

  it('goes on with its runs after connections were dropped, again and again', { timeout: 60_000 }, async () => {
    const runs = await Promise.all(Array.from({ length: 15 }, () => api().run(id)));
    for (const at of [2, 4, 6]) {
      // When a run has come so far, wherever the others are.
      await api().until(runs[0]!, (snapshot) => JSON.stringify(snapshot).includes(`"s${at}"`));
      proxy.drop();
    }
    for (const runId of runs) await expectSound(runId);
  });

  it('answers in the envelope meanwhile, keeps its keys, and is itself again afterwards', {
    timeout: 90_000,
  }, async () => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => api().run(id)));
    const tag = unique('outage');
    const create = (): Promise<Answer> =>
      api().post('/v1/runs', { workflowId: id, tags: [tag] }, { 'idempotency-key': tag });
    await proxy.cut();
    const during = [create(), api().get(`/v1/runs/${runs[0]}`), create()];
    await proxy.restore();
    for (const answer of await Promise.all(during)) {
      if (answer.status >= 400) expectUnavailable(answer);
    }
    const created = await untilServed(create);
    expect(created.status).toBe(201);
    for (const runId of [...runs, created.body.runId]) await expectSound(runId);
    const { items } = (await api().get(`/v1/host/capstan/runs?tag=${tag}`)).body;
    expect(items.map((item: { runId: string }) => item.runId)).toEqual([created.body.runId]);
  });

  it('asks for patience on every route, whatever needs the store', { timeout: 90_000 }, async () => {
    const operations = await operationsOf(api());
    await proxy.cut();
    const answers = await Promise.all(
      operations.map(async ({ method, path, hasBody }) => ({
        name: `${method} ${path}`,
        // Requests for the same resource would wait for each other.
        answer: await api().request(method, fill(path, {}, unique('absent')), hasBody ? {} : undefined),
      })),
    );
    const failed = answers.filter(({ answer }) => answer.status >= 500);
    expect(failed.length).toBeGreaterThan(operations.length / 2);
    for (const { name, answer } of failed) expectUnavailable(answer, name);
    await proxy.restore();
  });

  it('says that it is alive and not ready', { timeout: 60_000 }, async () => {
    expect((await api().get('/readyz')).status).toBe(200);
    await proxy.cut();
    const answer = await api().get('/readyz');
    expect(answer.status).toBe(503);
    expectEnvelope(answer);
    expect((await api().get('/healthz')).status).toBe(200);
    expect((await api().get('/.well-known/openwop')).status).toBe(200);
    await proxy.restore();
    await untilServed(() => api().get('/readyz'));
  });

  // Last: it ends the host.
  it('can still be stopped', { timeout: 60_000 }, async () => {
    await api().run(id);
    await proxy.cut();
    host.signal('SIGTERM');
    const isStopped = await Promise.race([host.exit.then(() => true), later(STOP_MAX_MS).then(() => false)]);
    expect(isStopped).toBe(true);
  });
});

/** Not the caller's fault and not a bug: it may try again. */
function expectUnavailable(answer: Answer, name = ''): void {
  expect([name, answer.status, answer.headers.get('retry-after')]).toEqual([name, 503, '1']);
  expectEnvelope(answer);
}

/** Only for what must not take so long. */
function later(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Asks until the host is itself again. */
async function untilServed(request: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await request();
    if (answer.status < 500) return answer;
  }
}

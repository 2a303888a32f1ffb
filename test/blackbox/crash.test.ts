import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { chanceOf } from '../support/chance.ts';
import { freshDatabase, freshFolder } from '../support/database.ts';
import { edge, line, node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { KEYS } from '../support/host.ts';
import { type HostProcess, runProgram, spawnHost } from '../support/process.ts';
import { Stream } from '../support/stream.ts';

/** What was acknowledged is there, what was not is retried: hosts are killed for real, at seeded moments. */

type Event = Answer['body'];

const TERMINAL = ['run.completed', 'run.failed', 'run.cancelled'];
const SEED = 4_711;
const ROUNDS = 4;
const REQUESTS_PER_ROUND = 240;

const alive = new Set<HostProcess>();
const folders: { remove(): void }[] = [];
afterAll(async () => {
  for (const host of alive) host.signal('SIGKILL');
  for (const host of alive) await host.exit;
  for (const folder of folders) folder.remove();
});

async function start(environment: Record<string, string>): Promise<HostProcess> {
  const host = await spawnHost(environment);
  alive.add(host);
  return host;
}

async function kill(host: HostProcess): Promise<void> {
  host.signal('SIGKILL');
  expect(await host.exit).toBe('SIGKILL');
  alive.delete(host);
}

function newFolder(): string {
  const folder = freshFolder();
  folders.push(folder);
  return folder.path;
}

/** What a caller asked for, and what it knows came of it. */
interface Asked {
  readonly body: { readonly workflowId: string; readonly tags: readonly string[] };
  readonly key: string | undefined;
  readonly ends: string;
  runId?: string;
}

const effectful = workflow(
  [node('before'), node('effect', 'core.conformance.side-effect'), node('after')],
  line('before', 'effect', 'after'),
);
const retrying = workflow(
  [node('flaky', 'core.fail', { settings: { retry: { maxRetries: 3, delayMs: 20 } } }), node('rescue')],
  [edge('flaky', 'rescue', { triggerRule: 'any_failed' })],
);
const waiting = workflow(
  [node('a'), node('wait', 'core.delay', { config: { ms: 80 } }), node('b')],
  line('a', 'wait', 'b'),
);

/** Workflow to the status in which its runs end. */
const KINDS: readonly (readonly [workflowId: string, ends: string, inputs?: object])[] = [
  ['conformance-noop', 'completed'],
  ['conformance-multi-node', 'completed'],
  ['conformance-failure', 'failed'],
  ['conformance-identity', 'completed', { payload: { a: [1, 2, 3] } }],
  ['conformance-subworkflow-parent', 'completed'],
  ['conformance-channel-ttl', 'completed'],
  [effectful.id, 'completed'],
  [effectful.id, 'completed'],
  [retrying.id, 'completed'],
  [waiting.id, 'completed'],
];

async function registerAll(api: Api): Promise<void> {
  for (const definition of [effectful, retrying, waiting]) await register(api, definition);
}

/** Asks for many runs at once. `onTaken` hears of each that was acknowledged. */
async function ask(apis: readonly Api[], chance: () => number, onTaken: (count: number) => void): Promise<Asked[]> {
  let taken = 0;
  const all = Array.from({ length: REQUESTS_PER_ROUND }, async (_, index): Promise<Asked> => {
    const [workflowId, ends, inputs = {}] = KINDS[Math.floor(chance() * KINDS.length)]!;
    const tag = unique('asked');
    const body = { workflowId, inputs, tags: [tag] };
    const asked: Asked = { body, ends, key: chance() < 0.5 ? tag : undefined };
    await tryOnce(apis[index % apis.length]!, asked);
    if (asked.runId !== undefined) onTaken(++taken);
    return asked;
  });
  return Promise.all(all);
}

/** A host that dies may leave a request without an answer; any answer it gives must be the right one. */
async function tryOnce(api: Api, asked: Asked): Promise<void> {
  const headers: Record<string, string> = asked.key === undefined ? {} : { 'idempotency-key': asked.key };
  const answer = await api.post('/v1/runs', asked.body, headers).catch(() => undefined);
  if (!answer) return;
  expect(answer.status, answer.text).toBe(201);
  if (asked.runId !== undefined) expect(answer.body.runId).toBe(asked.runId);
  asked.runId = answer.body.runId;
}

/** The promises about a log, whatever happened while it was written. */
function expectSoundLog(events: readonly Event[]): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  const types = events.map(({ type }) => type);
  expect(types.filter((type) => type === 'run.started')).toEqual(['run.started']);
  expect(types[0]).toBe('run.started');
  expect(types.filter((type) => TERMINAL.includes(type))).toEqual([types.at(-1)]);
  const ends = events.filter(({ type }) => /^node\.(completed|failed|skipped|cancelled)$/.test(type));
  expect(new Set(ends.map(({ nodeId }) => nodeId)).size).toBe(ends.length);
}

/** Everything that was acknowledged is there and has come to its right end. */
async function expectAllKept(api: Api, all: readonly Asked[]): Promise<Event[]> {
  const logs: Event[] = [];
  for (const batch of chunksOf(all, 40)) {
    const found = await Promise.all(
      batch.map(async ({ runId, ends, body, key }) => {
        if (key !== undefined || runId !== undefined) {
          const { items } = (await api.get(`/v1/host/capstan/runs?tag=${body.tags[0]}`)).body;
          expect(items.map((item: { runId: string }) => item.runId)).toEqual([runId]);
        }
        if (runId === undefined) return [];
        const snapshot = await api.ended(runId);
        expect(snapshot.status, JSON.stringify(snapshot)).toBe(ends);
        const events = await api.events(runId);
        expectSoundLog(events);
        return events;
      }),
    );
    logs.push(...found.flat());
  }
  return logs;
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

/** Every run of the tenant has ended soundly, also those whose caller never heard of them. */
async function expectAllEnded(api: Api): Promise<void> {
  for (let cursor = ''; ; ) {
    const { body } = await api.get(`/v1/host/capstan/runs?limit=200${cursor}`);
    for (const { runId } of body.items) await api.ended(runId);
    if (body.nextCursor === undefined) return;
    cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
  }
}

interface EffectRow {
  readonly effect_id: string;
  readonly state: string;
  readonly attempts: number;
  readonly fired: number;
}

const EFFECTS = `SELECT effects.effect_id, state, attempts, COALESCE(fired, 0) AS fired
                 FROM effects LEFT JOIN effect_probes USING (effect_id) WHERE provider_key = 'tool'`;

/** An effect is fired at most once for each attempt, and never again once its outcome is known. */
function expectOnce(rows: readonly EffectRow[], recorded: ReadonlyMap<string, number>): void {
  expect(rows.length).toBeGreaterThan(20);
  for (const { effect_id, state, attempts, fired } of rows) {
    expect(state).toBe('done');
    expect(fired).toBeGreaterThanOrEqual(1);
    expect(fired).toBeLessThanOrEqual(attempts);
    if (recorded.has(effect_id)) expect(fired).toBe(recorded.get(effect_id));
  }
  const once = rows.filter(({ fired }) => fired === 1);
  expect(once.length).toBeGreaterThan(rows.length * 0.8);
}

function effectsIn(folder: string): EffectRow[] {
  const database = new DatabaseSync(join(folder, 'capstan.db'));
  try {
    return database.prepare(EFFECTS).all() as unknown as EffectRow[];
  } finally {
    database.close();
  }
}

describe('a host on SQLite that is killed under load, again and again', () => {
  it('keeps every run that it acknowledged and brings all of them to their end', { timeout: 120_000 }, async () => {
    const chance = chanceOf(SEED);
    const folder = newFolder();
    const all: Asked[] = [];
    const recorded = new Map<string, number>();
    let host = await start({ CAPSTAN_DATA: folder });
    await registerAll(host.as('editor'));
    for (let round = 0; round < ROUNDS; round++) {
      const deadAfter = 1 + Math.floor(chance() * REQUESTS_PER_ROUND * 0.9);
      const dying = host;
      const asked = await ask([host.as('editor')], chance, (taken) => {
        if (taken === deadAfter) dying.signal('SIGKILL');
      });
      await kill(host);
      expect(asked.filter(({ runId }) => runId !== undefined).length).toBeGreaterThanOrEqual(deadAfter);
      for (const { effect_id, state, fired } of effectsIn(folder)) if (state === 'done') recorded.set(effect_id, fired);
      host = await start({ CAPSTAN_DATA: folder });
      // Callers with a key try again: they get the run they had, or get one now.
      for (const one of asked) if (one.key !== undefined) await tryOnce(host.as('editor'), one);
      all.push(...asked);
    }
    expect(all.filter(({ key, runId }) => key !== undefined && runId === undefined)).toEqual([]);
    const events = await expectAllKept(host.as('editor'), all);
    expect(events.some(({ type, payload }) => type === 'run.resumed' && payload.recovered === true)).toBe(true);
    await expectAllEnded(host.as('editor'));
    host.signal('SIGTERM');
    expect(await host.exit).toBe(0);
    alive.delete(host);
    expectOnce(effectsIn(folder), recorded);
  });

  it('loses nothing of pauses and cancellations that it acknowledged', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    let host = await start({ CAPSTAN_DATA: folder });
    const ids = await Promise.all(Array.from({ length: 12 }, () => host.as('editor').run('conformance-cancellable')));
    const [paused, cancelled, live] = chunksOf(ids, 4);
    for (const runId of paused!) await host.as('editor').post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    for (const runId of cancelled!) await host.as('editor').post(`/v1/runs/${runId}/cancel`);
    await kill(host);
    host = await start({ CAPSTAN_DATA: folder });
    const api = host.as('editor');
    const statusOf = async (runId: string): Promise<string> => (await api.get(`/v1/runs/${runId}`)).body.status;
    expect(await Promise.all(paused!.map(statusOf))).toEqual(paused!.map(() => 'paused'));
    expect(await Promise.all(cancelled!.map(statusOf))).toEqual(cancelled!.map(() => 'cancelled'));
    expect(await Promise.all(live!.map(statusOf))).toEqual(live!.map(() => 'running'));
    for (const runId of ids) await api.post(`/v1/runs/${runId}/cancel`);
    for (const runId of ids) expectSoundLog(await api.events(runId));
    await kill(host);
  });

  it('ends the children of every run whose cancellation it acknowledged', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    let host = await start({ CAPSTAN_DATA: folder });
    const calls = node('call', 'core.subWorkflow', { config: { workflowId: 'conformance-cancellable' } });
    const id = await register(host.as('editor'), workflow([calls]));
    const parents = await Promise.all(Array.from({ length: 20 }, () => host.as('editor').run(id)));
    for (const runId of parents) await host.as('editor').until(runId, (snapshot) => 'childRuns' in snapshot);
    const answers = await Promise.all(
      parents.map(async (runId, index) => {
        const answer = await host
          .as('editor')
          .post(`/v1/runs/${runId}/cancel`)
          .catch(() => undefined);
        if (index === 0) host.signal('SIGKILL');
        return answer;
      }),
    );
    await kill(host);
    host = await start({ CAPSTAN_DATA: folder });
    const api = host.as('editor');
    const cancelled = parents.filter((_runId, index) => answers[index]?.status === 200);
    expect(cancelled.length).toBeGreaterThan(0);
    for (const runId of cancelled) {
      const { status, childRuns } = (await api.get(`/v1/runs/${runId}`)).body;
      expect(status).toBe('cancelled');
      const child = await api.ended(childRuns[0].runId);
      expect(child.status).toBe('cancelled');
      expectSoundLog(await api.events(child.runId));
    }
    await kill(host);
  });

  it('lets a reader go on where it was, without gap or repeat', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    let host = await start({ CAPSTAN_DATA: folder });
    const steps = Array.from({ length: 20 }, (_, index) => `s${index}`);
    const slow = workflow(
      steps.map((id) => node(id, 'core.delay', { config: { ms: 25 } })),
      line(...steps),
    );
    const runId = await host.as('editor').run(await register(host.as('editor'), slow));
    const path = `/v1/runs/${runId}/events?streamMode=debug`;
    const first = await Stream.open(host.url + path, KEYS.editor.key);
    await first.until((frames) => frames.length >= 12);
    await kill(host);
    await first.ended();
    host = await start({ CAPSTAN_DATA: folder });
    const position = { 'last-event-id': first.frames.at(-1)!.id! };
    const second = await host.as('editor').frames(path, position);
    expect(second.isEnded).toBe(true);
    const seen = [...first.frames, ...second.frames].map(({ data }) => JSON.parse(data!));
    expect(seen).toEqual(await host.as('editor').events(runId));
    expectSoundLog(seen);
    await kill(host);
  });
});

describe('two hosts on one PostgreSQL, one of which is killed', () => {
  const environment = async (): Promise<Record<string, string>> => ({
    DATABASE_URL: await freshDatabase(inject('postgresUrl')),
    CAPSTAN_LEASE_MS: '600',
  });

  it('bring every run to its end, again and again', { timeout: 120_000 }, async () => {
    const chance = chanceOf(SEED + 1);
    const shared = await environment();
    const all: Asked[] = [];
    let [one, two] = await Promise.all([start(shared), start(shared)]);
    await registerAll(one.as('editor'));
    const database = new pg.Client(shared.DATABASE_URL!);
    await database.connect();
    const effects = async (): Promise<EffectRow[]> =>
      (await database.query(EFFECTS)).rows.map((row) => ({
        ...(row as EffectRow),
        attempts: Number(row.attempts),
        fired: Number(row.fired),
      }));
    const recorded = new Map<string, number>();
    for (let round = 0; round < 3; round++) {
      const deadAfter = 20 + Math.floor(chance() * REQUESTS_PER_ROUND * 0.6);
      const dying = one;
      const asked = await ask([one.as('editor'), two.as('editor')], chance, (taken) => {
        if (taken === deadAfter) dying.signal('SIGKILL');
      });
      await kill(one);
      for (const { effect_id, state, fired } of await effects()) if (state === 'done') recorded.set(effect_id, fired);
      for (const asking of asked) if (asking.key !== undefined) await tryOnce(two.as('editor'), asking);
      all.push(...asked);
      one = two;
      two = await start(shared);
    }
    await expectAllKept(one.as('editor'), all);
    await expectAllEnded(two.as('editor'));
    expectOnce(await effects(), recorded);
    await database.end();
    for (const host of [one, two]) {
      host.signal('SIGTERM');
      expect(await host.exit).toBe(0);
      alive.delete(host);
    }
  });

  it('hand a run over that was being worked on, and say so in its log', { timeout: 60_000 }, async () => {
    const shared = await environment();
    const [one, two] = await Promise.all([start(shared), start(shared)]);
    const tokens = Array.from({ length: 60 }, (_, index) => `t${index}`);
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens, delayMsPerToken: 50 } } };
    const runId = await one.as('test').run('conformance-stream-text', { configurable });
    const watched = await Stream.open(`${one.url}/v1/runs/${runId}/events?streamMode=messages`, KEYS.test.key);
    await watched.until((frames) => frames.length >= 3);
    await kill(one);
    const snapshot = await two.as('test').ended(runId);
    expect(snapshot.status).toBe('completed');
    const events = await two.as('test').events(runId);
    expectSoundLog(events);
    const handedOver = events.filter(({ type }) => type === 'run.resumed');
    expect(handedOver.map(({ payload }) => payload)).toEqual([{ recovered: true }]);
    expect(snapshot.nodeStates.ai.outputs.content).toBe(tokens.join(''));
    await kill(two);
  });

  it('finish a delay that the killed one began, at its time', { timeout: 60_000 }, async () => {
    const shared = await environment();
    const [one, two] = await Promise.all([start(shared), start(shared)]);
    const runId = await one.as('editor').run('conformance-cancellable', { inputs: { delayMs: 1_500 } });
    await one.as('editor').until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    await kill(one);
    const snapshot = await two.as('editor').ended(runId);
    expect(snapshot.status).toBe('completed');
    const took = Date.parse(snapshot.completedAt) - Date.parse(snapshot.startedAt);
    expect(took).toBeGreaterThanOrEqual(1_500);
    expect(took).toBeLessThan(6_000);
    expectSoundLog(await two.as('editor').events(runId));
    await kill(two);
  });

  it('start together on an empty database', { timeout: 60_000 }, async () => {
    const shared = await environment();
    const hosts = await Promise.all([1, 2, 3].map(() => start(shared)));
    const runId = await hosts[0]!.as('editor').run('conformance-noop');
    for (const host of hosts) expect((await host.as('editor').ended(runId)).status).toBe('completed');
    for (const host of hosts) await kill(host);
  });
});

describe('a host that is asked to stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s ends with 0, promptly, and its runs go on after the restart',
    async (signal) => {
      const folder = newFolder();
      let host = await start({ CAPSTAN_DATA: folder });
      const api = host.as('editor');
      const runs = await Promise.all(
        Array.from({ length: 20 }, () => api.run('conformance-cancellable', { inputs: { delayMs: 700 } })),
      );
      const stream = await Stream.open(`${host.url}/v1/runs/${runs[0]}/events`, KEYS.editor.key);
      const askedAt = Date.now();
      host.signal(signal);
      expect(await host.exit).toBe(0);
      alive.delete(host);
      expect(Date.now() - askedAt).toBeLessThan(5_000);
      await stream.ended();
      expect(stream.isComplete).toBe(true);
      host = await start({ CAPSTAN_DATA: folder });
      for (const runId of runs) {
        expect((await host.as('editor').ended(runId)).status).toBe('completed');
        const events = await host.as('editor').events(runId);
        expectSoundLog(events);
        // Nothing was lost, so nothing had to be recovered.
        expect(events.map(({ type }) => type)).not.toContain('run.resumed');
      }
      await kill(host);
    },
  );

  it('lets a step in flight finish, or takes it up again', { timeout: 60_000 }, async () => {
    const folder = newFolder();
    let host = await start({ CAPSTAN_DATA: folder });
    const tokens = Array.from({ length: 20 }, (_, index) => `t${index} `);
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens, delayMsPerToken: 40 } } };
    const runId = await host.as('test').run('conformance-stream-text', { configurable });
    const stream = await Stream.open(`${host.url}/v1/runs/${runId}/events?streamMode=messages`, KEYS.test.key);
    await stream.until((frames) => frames.length >= 2);
    host.signal('SIGTERM');
    expect(await host.exit).toBe(0);
    alive.delete(host);
    host = await start({ CAPSTAN_DATA: folder });
    const snapshot = await host.as('test').ended(runId);
    expect(snapshot).toMatchObject({
      status: 'completed',
      nodeStates: { ai: { outputs: { content: tokens.join('') } } },
    });
    expectSoundLog(await host.as('test').events(runId));
    await kill(host);
  });
});

describe('starting', () => {
  const KEY = JSON.stringify([{ key: 'a-key-for-this', tenant: 'alpha', principal: 'p', role: 'owner' }]);

  it('is refused on a data folder that another process owns, with a reason', async () => {
    const folder = newFolder();
    const host = await start({ CAPSTAN_DATA: folder });
    const second = await runProgram(['serve'], { PORT: '0', CAPSTAN_DATA: folder, CAPSTAN_API_KEYS: KEY });
    expect(second.code).toBe(1);
    expect(second.output).toMatch(/could not start/i);
    expect(second.output).toContain(folder);
    expect(second.output).not.toContain('listening');
    expect(second.output).not.toMatch(/\n\s+at /);
    expect((await host.as('editor').ended(await host.as('editor').run('conformance-noop'))).status).toBe('completed');
    await kill(host);
  });

  it('with bad settings names every one of them and ends', async () => {
    const { code, output } = await runProgram(['serve'], {
      PORT: 'many',
      DATABASE_URL: 'http://example.com',
      CAPSTAN_API_KEYS: '[{"key":"short"},{"key":"long-enough","tenant":"a b","principal":"p","role":"king"}]',
      CAPSTAN_PUBLIC_URL: 'nowhere',
      CAPSTAN_LOG: 'loud',
      CAPSTAN_CONFORMANCE: 'maybe',
      CAPSTAN_LEASE_MS: '1',
      CAPSTAN_MAX_BODY_BYTES: '-5',
      CAPSTAN_RATE_LIMIT: '0',
    });
    expect(code).not.toBe(0);
    for (const name of [
      'PORT',
      'DATABASE_URL',
      'CAPSTAN_API_KEYS[0].key',
      'CAPSTAN_API_KEYS[0].tenant',
      'CAPSTAN_API_KEYS[1].tenant',
      'CAPSTAN_API_KEYS[1].role',
      'CAPSTAN_PUBLIC_URL',
      'CAPSTAN_LOG',
      'CAPSTAN_CONFORMANCE',
      'CAPSTAN_LEASE_MS',
      'CAPSTAN_MAX_BODY_BYTES',
      'CAPSTAN_RATE_LIMIT',
    ]) {
      expect(output).toContain(name);
    }
    expect(output).not.toContain('listening');
    expect(output).not.toContain('long-enough');
  });

  it('with keys that are no JSON says so, and does not print them', async () => {
    const { code, output } = await runProgram(['serve'], { PORT: '0', CAPSTAN_API_KEYS: 'hk_live_something-secret' });
    expect(code).not.toBe(0);
    expect(output).toContain('CAPSTAN_API_KEYS');
    expect(output).not.toContain('something-secret');
  });

  it('is refused with the conformance switch in production', async () => {
    const environment = { PORT: '0', CAPSTAN_DATA: newFolder(), CAPSTAN_CONFORMANCE: '1', NODE_ENV: 'production' };
    const { code, output } = await runProgram(['serve'], environment);
    expect(code).not.toBe(0);
    expect(output).toContain('CAPSTAN_CONFORMANCE');
  });

  it.each([['serve', '--no-such-flag'], ['serve', '--port'], ['no-such-command']])(
    'with %j is wrong usage',
    async (...args) => {
      expect((await runProgram(args.flat(), { PORT: '0' })).code).toBe(2);
    },
  );

  it('is refused without a database that can be reached', { timeout: 60_000 }, async () => {
    const environment = { PORT: '0', DATABASE_URL: 'postgres://127.0.0.1:1/nothing', CAPSTAN_API_KEYS: KEY };
    const { code, output } = await runProgram(['serve'], environment);
    expect(code).toBe(1);
    expect(output).toMatch(/could not start/i);
  });

  it('is refused with a folder of workflows that is not there or has a broken one, and names it', async () => {
    const folder = newFolder();
    const workflows = join(folder, 'workflows');
    const environment = {
      PORT: '0',
      CAPSTAN_DATA: join(folder, 'data'),
      CAPSTAN_WORKFLOWS: workflows,
      CAPSTAN_API_KEYS: KEY,
    };
    const absent = await runProgram(['serve'], environment);
    expect(absent.code).toBe(1);
    expect(absent.output).toContain('workflows');
    mkdirSync(workflows);
    for (const broken of ['{}', JSON.stringify({ ...workflow([node('a'), node('a')]), id: 'twice' })]) {
      writeFileSync(join(workflows, 'broken.json'), broken);
      const { code, output } = await runProgram(['serve'], environment);
      expect(code, output).toBe(1);
      expect(output).toMatch(/could not start/i);
      expect(output).toContain('broken.json');
    }
  });

  it('loads a folder of workflows for every tenant, and loading it again changes nothing', async () => {
    const folder = newFolder();
    const workflows = join(folder, 'workflows');
    mkdirSync(workflows);
    writeFileSync(join(workflows, 'mine.json'), JSON.stringify({ ...workflow([node('a')]), id: 'from-a-file' }));
    const environment = { CAPSTAN_DATA: join(folder, 'data'), CAPSTAN_WORKFLOWS: workflows };
    for (let round = 0; round < 2; round++) {
      const host = await start(environment);
      for (const who of ['editor', 'other'] as const) {
        const { items } = (await host.as(who).get(`${WORKFLOWS}?limit=200`)).body;
        const found = items.find(({ id }: { id: string }) => id === 'from-a-file');
        expect(found).toMatchObject({ shared: true, registeredVersion: 1 });
        const api = host.as(who);
        expect((await api.ended(await api.run('from-a-file'))).status).toBe('completed');
      }
      await kill(host);
    }
  });

  it('for the first time without keys makes an owner, shows its key once, and the key works', async () => {
    const folder = newFolder();
    const environment = { CAPSTAN_DATA: folder, CAPSTAN_API_KEYS: '' };
    const first = await start(environment);
    const [key] = /hk_live_[\w-]+/.exec(first.output())!;
    const api = new Api(first.url, key);
    const snapshot = await api.ended(await api.run('conformance-noop'));
    expect(snapshot.owner.tenant).toBe('default');
    await kill(first);
    const second = await start(environment);
    expect(second.output()).not.toContain('hk_live_');
    expect((await new Api(second.url, key).get(`/v1/runs/${snapshot.runId}`)).status).toBe(200);
    await kill(second);
  });

  it('shows a ready-made command that really starts the example', async () => {
    const host = await start({ CAPSTAN_DATA: newFolder(), CAPSTAN_API_KEYS: '' });
    const output = host.output();
    const [key] = /hk_live_[\w-]+/.exec(output)!;
    const body = /-d '([^']+)'/.exec(output)![1]!;
    const api = new Api(host.url, key);
    const answer = await api.request('POST', '/v1/runs', body, { 'content-type': 'application/json' });
    expect(answer.status, answer.text).toBe(201);
    await kill(host);
  });

  it('explains itself', async () => {
    const { code, output } = await runProgram(['serve', '--help'], {});
    expect(code).toBe(0);
    for (const name of [
      'HOST',
      'PORT',
      'CAPSTAN_DATA',
      'DATABASE_URL',
      'CAPSTAN_API_KEYS',
      'CAPSTAN_WORKFLOWS',
      'CAPSTAN_LOG',
    ]) {
      expect(output).toContain(name);
    }
  });

  it('is refused on a port that is taken', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as { port: number };
    const environment = { PORT: String(port), CAPSTAN_DATA: newFolder(), CAPSTAN_API_KEYS: KEY };
    const { code, output } = await runProgram(['serve'], environment);
    taken.close();
    expect(code).toBe(1);
    expect(output).toMatch(/could not start/i);
    expect(output).toContain(String(port));
  });

  it('is refused with a workflow that is no JSON, and names the file', async () => {
    const folder = newFolder();
    const workflows = join(folder, 'workflows');
    mkdirSync(workflows);
    writeFileSync(join(workflows, 'broken.json'), '{');
    const { code, output } = await runProgram(['serve'], {
      PORT: '0',
      CAPSTAN_DATA: join(folder, 'data'),
      CAPSTAN_WORKFLOWS: workflows,
      CAPSTAN_API_KEYS: KEY,
    });
    expect(code).toBe(1);
    expect(output).toContain('broken.json');
  });
});

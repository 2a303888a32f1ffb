import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { chanceOf } from '../support/chance.ts';
import { freshDatabase } from '../support/database.ts';
import { KEYS, type TestHost } from '../support/host.ts';
import {
  type Asked,
  ask,
  EFFECTS,
  type EffectRow,
  expectAllEnded,
  expectAllKept,
  expectOnce,
  REQUESTS_PER_ROUND,
  registerAll,
  tryOnce,
} from '../support/kill-load.ts';
import { expectSoundLog, killableHosts, killsOr } from '../support/killed.ts';
import { Stream } from '../support/stream.ts';

/** Several hosts on one database: one is killed at a seeded moment, the others go on with its work. */

const SEED = 4_712;
const ROUNDS = killsOr(2);

const { start, follow, kill, stop, newStore } = killableHosts();

describe('hosts on one PostgreSQL that are killed one after the other', () => {
  it('leave runs that the last of them brings to their end', { timeout: 240_000 }, async () => {
    const chance = chanceOf(SEED);
    const shared: Record<string, string> = { ...(await newStore('postgres')), CAPSTAN_LEASE_MS: '600' };
    const all: Asked[] = [];
    // With such leases the last one has to be a process, too: beside a test that is busy it would lose its own.
    const [survivor, ...doomed] = await Promise.all([
      start(shared),
      ...Array.from({ length: ROUNDS }, () => start(shared)),
    ]);
    await registerAll(survivor.as('editor'));
    const database = new pg.Client(shared.DATABASE_URL!);
    await database.connect();
    const effects = async (): Promise<EffectRow[]> =>
      (await database.query(EFFECTS)).rows.map((row) => ({
        ...(row as EffectRow),
        attempts: Number(row.attempts),
        fired: Number(row.fired),
      }));
    const recorded = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round++) {
      const deadAfter = 20 + Math.floor(chance() * REQUESTS_PER_ROUND * 0.6);
      const [dying, next] = [doomed[round]!, doomed[round + 1] ?? survivor];
      const asked = await ask([dying.as('editor'), next.as('editor')], chance, (taken) => {
        if (taken === deadAfter) dying.signal('SIGKILL');
      });
      await kill(dying);
      for (const { effect_id, state, fired } of await effects()) if (state === 'done') recorded.set(effect_id, fired);
      for (const asking of asked) if (asking.key !== undefined) await tryOnce(next.as('editor'), asking);
      all.push(...asked);
    }
    await expectAllKept(survivor.as('editor'), all);
    await expectAllEnded(survivor.as('editor'));
    expectOnce(await effects(), recorded);
    await database.end();
    await stop(survivor);
  });
});

describe('a host whose neighbour was killed', () => {
  const TOKENS = Array.from({ length: 60 }, (_, index) => `t${index}`);
  let survivor: TestHost;
  let streaming: string;
  let delayed: string;

  beforeAll(async () => {
    // Long enough that no host is taken for dead that is only slow: each hand-over is in the log.
    const shared = { ...(await newStore('postgres')), CAPSTAN_LEASE_MS: '3000' };
    const one = await start(shared);
    survivor = await follow(shared);
    delayed = await one.as('editor').run('conformance-cancellable', { inputs: { delayMs: 1_500 } });
    await one.as('editor').until(delayed, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    const mocked = { id: 'stream-text', config: { tokens: TOKENS, delayMsPerToken: 50 } };
    streaming = await one.as('test').run('conformance-stream-text', { configurable: { mockProvider: mocked } });
    const watched = await Stream.open(`${one.url}/v1/runs/${streaming}/events?streamMode=messages`, KEYS.test.key);
    await watched.until((frames) => frames.length >= 3);
    await kill(one);
  });
  afterAll(() => survivor.stop());

  it('takes a run over that was being worked on, and says so in its log', { timeout: 60_000 }, async () => {
    const snapshot = await survivor.as('test').ended(streaming);
    expect(snapshot.status).toBe('completed');
    const events = await survivor.as('test').events(streaming);
    expectSoundLog(events);
    const handedOver = events.filter(({ type }) => type === 'run.resumed');
    expect(handedOver.map(({ payload }) => payload)).toEqual([{ recovered: true }]);
    expect(snapshot.nodeStates.ai.outputs.content).toBe(TOKENS.join(''));
  });

  it('finishes a delay that the killed one began, at its time', { timeout: 60_000 }, async () => {
    const snapshot = await survivor.as('editor').ended(delayed);
    expect(snapshot.status).toBe('completed');
    const took = Date.parse(snapshot.completedAt) - Date.parse(snapshot.startedAt);
    expect(took).toBeGreaterThanOrEqual(1_500);
    expect(took).toBeLessThan(15_000);
    expectSoundLog(await survivor.as('editor').events(delayed));
  });
});

describe('three hosts', () => {
  it('start together on an empty database', { timeout: 60_000 }, async () => {
    const shared = { DATABASE_URL: await freshDatabase(inject('postgresUrl')) };
    const hosts = await Promise.all([1, 2, 3].map(() => follow(shared)));
    const runId = await hosts[0]!.as('editor').run('conformance-noop');
    for (const host of hosts) expect((await host.as('editor').ended(runId)).status).toBe('completed');
  });
});

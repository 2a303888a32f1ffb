import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { chanceOf } from '../support/chance.ts';
import { freshDatabase } from '../support/database.ts';
import { KEYS } from '../support/host.ts';
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
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { Stream } from '../support/stream.ts';

/** Several hosts on one database: one is killed at a seeded moment, the others go on with its work. */

const SEED = 4_712;

const { start, kill, stop } = killableHosts();

describe('two hosts on one PostgreSQL, one of which is killed', () => {
  const environment = async (leaseMs = 600): Promise<Record<string, string>> => ({
    DATABASE_URL: await freshDatabase(inject('postgresUrl')),
    CAPSTAN_LEASE_MS: String(leaseMs),
  });

  it('bring every run to its end, again and again', { timeout: 240_000 }, async () => {
    const chance = chanceOf(SEED);
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
      await stop(host);
    }
  });

  it('hand a run over that was being worked on, and say so in its log', { timeout: 60_000 }, async () => {
    // Long enough that no host is taken for dead that is only slow: each hand-over is in the log.
    const shared = await environment(3_000);
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
    expect(took).toBeLessThan(15_000);
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

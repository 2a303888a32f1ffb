import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { chanceOf } from '../support/chance.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { KEYS } from '../support/host.ts';
import {
  type Asked,
  ask,
  chunksOf,
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
import type { HostProcess } from '../support/process.ts';
import { Stream } from '../support/stream.ts';

/** What was acknowledged is there, what was not is retried: hosts are killed for real, at seeded moments. */

const SEED = 4_711;
const ROUNDS = killsOr(2);

const { start, kill, stop, newStore } = killableHosts();

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
    const environment = await newStore('sqlite');
    const all: Asked[] = [];
    const recorded = new Map<string, number>();
    let host = await start(environment);
    await registerAll(host.as('editor'));
    for (let round = 0; round < ROUNDS; round++) {
      const deadAfter = 1 + Math.floor(chance() * REQUESTS_PER_ROUND * 0.9);
      const dying = host;
      const asked = await ask([host.as('editor')], chance, (taken) => {
        if (taken === deadAfter) dying.signal('SIGKILL');
      });
      await kill(host);
      expect(asked.filter(({ runId }) => runId !== undefined).length).toBeGreaterThanOrEqual(deadAfter);
      for (const { effect_id, state, fired } of effectsIn(environment.CAPSTAN_DATA!))
        if (state === 'done') recorded.set(effect_id, fired);
      host = await start(environment);
      // Callers with a key try again: they get the run they had, or get one now.
      for (const one of asked) if (one.key !== undefined) await tryOnce(host.as('editor'), one);
      all.push(...asked);
    }
    expect(all.filter(({ key, runId }) => key !== undefined && runId === undefined)).toEqual([]);
    const events = await expectAllKept(host.as('editor'), all);
    expect(events.some(({ type, payload }) => type === 'run.resumed' && payload.recovered === true)).toBe(true);
    await expectAllEnded(host.as('editor'));
    await stop(host);
    expectOnce(effectsIn(environment.CAPSTAN_DATA!), recorded);
  });
});

describe('a host on SQLite that is killed once', () => {
  const STEPS = Array.from({ length: 30 }, (_, index) => `s${index}`);
  let host: HostProcess;
  let ids: string[];
  let parents: string[];
  let cancellations: (Answer | undefined)[];
  let slowRun: string;
  let first: Stream;
  const api = (): Api => host.as('editor');
  const slowEvents = (): string => `/v1/runs/${slowRun}/events?streamMode=debug`;

  /** Pauses and cancellations are acknowledged, a stream is being read, and more is being cancelled at the moment. */
  beforeAll(async () => {
    const environment = await newStore('sqlite');
    host = await start(environment);
    ids = await Promise.all(Array.from({ length: 12 }, () => api().run('conformance-cancellable')));
    const [paused, cancelled] = chunksOf(ids, 4);
    for (const runId of paused!) await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    for (const runId of cancelled!) await api().post(`/v1/runs/${runId}/cancel`);
    const calls = node('call', 'core.subWorkflow', { config: { workflowId: 'conformance-cancellable' } });
    const calling = await register(api(), workflow([calls]));
    parents = await Promise.all(Array.from({ length: 20 }, () => api().run(calling)));
    for (const runId of parents) await api().until(runId, (snapshot) => 'childRuns' in snapshot);
    const slow = workflow(
      STEPS.map((id) => node(id, 'core.delay', { config: { ms: 25 } })),
      line(...STEPS),
    );
    slowRun = await api().run(await register(api(), slow));
    first = await Stream.open(host.url + slowEvents(), KEYS.editor.key);
    await first.until((frames) => frames.length >= 12);
    cancellations = await Promise.all(
      parents.map(async (runId, index) => {
        const answer = await api()
          .post(`/v1/runs/${runId}/cancel`)
          .catch(() => undefined);
        if (index === 0) host.signal('SIGKILL');
        return answer;
      }),
    );
    await kill(host);
    await first.ended();
    host = await start(environment);
  });
  afterAll(() => kill(host));

  it('loses nothing of pauses and cancellations that it acknowledged', { timeout: 60_000 }, async () => {
    const [paused, cancelled, live] = chunksOf(ids, 4);
    const statusOf = async (runId: string): Promise<string> => (await api().get(`/v1/runs/${runId}`)).body.status;
    expect(await Promise.all(paused!.map(statusOf))).toEqual(paused!.map(() => 'paused'));
    expect(await Promise.all(cancelled!.map(statusOf))).toEqual(cancelled!.map(() => 'cancelled'));
    expect(await Promise.all(live!.map(statusOf))).toEqual(live!.map(() => 'running'));
    for (const runId of ids) await api().post(`/v1/runs/${runId}/cancel`);
    for (const runId of ids) expectSoundLog(await api().events(runId));
  });

  it('ends the children of every run whose cancellation it acknowledged', { timeout: 60_000 }, async () => {
    const cancelled = parents.filter((_runId, index) => cancellations[index]?.status === 200);
    expect(cancelled.length).toBeGreaterThan(0);
    for (const runId of cancelled) {
      const { status, childRuns } = (await api().get(`/v1/runs/${runId}`)).body;
      expect(status).toBe('cancelled');
      const child = await api().ended(childRuns[0].runId);
      expect(child.status).toBe('cancelled');
      expectSoundLog(await api().events(child.runId));
    }
  });

  it('lets a reader go on where it was, without gap or repeat', { timeout: 60_000 }, async () => {
    const position = { 'last-event-id': first.frames.at(-1)!.id! };
    const second = await api().frames(slowEvents(), position);
    expect(second.isEnded).toBe(true);
    expect(second.frames.length).toBeGreaterThan(0);
    const seen = [...first.frames, ...second.frames].map(({ data }) => JSON.parse(data!));
    expect(seen).toEqual(await api().events(slowRun));
    expectSoundLog(seen);
  });
});

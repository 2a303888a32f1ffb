import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../test/support/definitions.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { TestRun } from '../engine/testing.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import { realClock } from '../system/real.ts';
import { GAUGES, HISTOGRAMS } from './metric-table.ts';
import { atIntervals, createMetrics, type GaugeReaders } from './metrics.ts';

/** Goal: metrics stay cheap and honest when the store is slow or gone, and when labels could become many. */

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const readers = (own: Partial<GaugeReaders>): GaugeReaders => {
  const names = Object.keys(GAUGES) as (keyof typeof GAUGES)[];
  const none = Object.fromEntries(names.map((name) => [name, undefined])) as Record<keyof typeof GAUGES, undefined>;
  return { ...none, ...own };
};

describe('gauges', () => {
  it('of a store that fails are not shown as if they were known, and the others are', async () => {
    const metrics = createMetrics(realClock);
    let isDown = false;
    const ofStore = async <T>(value: T): Promise<T> => {
      if (isDown) throw new Error('the store is gone');
      return value;
    };
    metrics.watch(
      readers({
        capstan_hosts: () => 2,
        capstan_interrupts_open: () => ofStore(3),
        capstan_work_due: () => ofStore({ run: 4 }),
      }),
    );
    const before = await metrics.text();
    expect(before).toMatch(/^capstan_interrupts_open 3$/m);
    expect(before).toMatch(/^capstan_work_due\{kind="run"\} 4$/m);
    isDown = true;
    const after = await metrics.text();
    expect(after).toMatch(/^capstan_hosts 2$/m);
    expect(after).toMatch(/^capstan_interrupts_open Nan$/im);
    expect(after).not.toMatch(/^capstan_work_due\{/m);
  });

  it('are left out where a host has nothing of the kind', async () => {
    const metrics = createMetrics(realClock);
    metrics.watch(readers({ capstan_hosts: () => 1 }));
    expect(await metrics.text()).not.toContain('capstan_disk_free_bytes');
  });

  it('ask the store at most every two seconds', async () => {
    const clock = new ManualClock();
    let asked = 0;
    const read = atIntervals(clock, async () => ++asked);
    expect([await read(), await read()]).toEqual([1, 1]);
    clock.advance(1_999);
    expect(await read()).toBe(1);
    clock.advance(1);
    expect(await read()).toBe(2);
  });
});

it('can be read without Prometheus: gauges that are known, and histograms by bucket', async () => {
  const metrics = createMetrics(realClock);
  metrics.watch(readers({ capstan_hosts: () => 2, capstan_interrupts_open: () => Number.NaN }));
  for (const ms of [1, 3, 3, 9_000]) metrics.committed({ units: 1, ms, isFailed: false });
  const readings = new Map((await metrics.readings()).map((reading) => [reading.name, reading]));
  expect(readings.get('capstan_hosts')).toMatchObject({ kind: 'gauge', points: [{ labels: {}, value: 2 }] });
  expect(readings.get('capstan_interrupts_open')!.points).toEqual([]);
  expect(readings.get('capstan_runs_finished_total')).toMatchObject({
    kind: 'counter',
    points: expect.arrayContaining([{ labels: { status: 'failed' }, value: 0 }]),
  });
  const { buckets: bounds } = HISTOGRAMS.capstan_commit_seconds;
  expect(readings.get('capstan_commit_seconds')).toMatchObject({
    kind: 'histogram',
    points: [{ labels: {}, value: { bounds, counts: [1, 2, 0, 0, 0, 0, 0, 0, 0, 1] } }],
  });
});

it('of the process are the same for all hosts in it, and keep none of those alive that were stopped', async () => {
  const stopped = new WeakRef(() => 2);
  createMetrics(realClock).watch(readers({ capstan_hosts: stopped.deref() }));
  const metrics = createMetrics(realClock);
  await new Promise(setImmediate);
  collectGarbage();
  expect(stopped.deref()).toBeUndefined();
  const text = await metrics.text();
  expect(text.match(/^capstan_process_cpu_seconds_total /gm)).toHaveLength(1);
});

it('have the delays of the event loop since they were last read', async () => {
  const metrics = createMetrics(realClock);
  const read = async (statistic: string): Promise<number> => {
    const [, value] = new RegExp(`^capstan_nodejs_eventloop_lag_${statistic}_seconds (\\S+)$`, 'm').exec(
      await metrics.text(),
    )!;
    return Number(value);
  };
  for (let tick = 0; tick < 50; tick++) metrics.late(0);
  metrics.late(500);
  expect(await read('max')).toBeCloseTo(0.5, 2);
  expect(await read('max')).toBeCloseTo(0.5, 2);
  for (const ms of [10, 20, 30]) metrics.late(ms);
  expect(await read('p50')).toBeCloseTo(0.02, 3);
  metrics.late(10 ** 12);
  expect(await read('p99')).toBeCloseTo(3_600, -2);
});

describe('what events say', () => {
  const definition = workflow([node('a')]);
  const usage = (model: string): NewEvent => ({
    type: 'provider.usage',
    nodeId: 'a',
    payload: { provider: 'acme', model, inputTokens: 1, outputTokens: 2, nodeId: 'a' },
  });

  it('names a hundred models at most; more are counted together', async () => {
    const metrics = createMetrics(realClock);
    const { run, events } = new TestRun(definition).record(
      ...Array.from({ length: 150 }, (_, index) => usage(`model-${index}`)),
    );
    metrics.appended({ run, events, before: 'running' });
    const text = await metrics.text();
    expect(text.match(/^capstan_model_tokens_total\{.*direction="input"\}/gm)).toHaveLength(101);
    expect(text).toMatch(/^capstan_model_tokens_total\{provider="other",model="other",direction="output"\} 100$/m);
  });

  it('measures an attempt from its start, which may be in an earlier append', async () => {
    const metrics = createMetrics(realClock);
    const test = new TestRun(definition).record({
      type: 'node.started',
      nodeId: 'a',
      payload: { nodeId: 'a', typeId: 'core.noop', attempt: 0 },
    });
    metrics.appended({ run: test.run, events: test.events, before: undefined });
    test.now += 3_000;
    const began = test.events.length;
    test.record({ type: 'node.completed', nodeId: 'a', payload: { nodeId: 'a' } });
    metrics.appended({ run: test.run, events: test.events.slice(began), before: 'running' });
    const text = await metrics.text();
    expect(text).toMatch(/^capstan_attempt_seconds_sum\{outcome="completed"\} 3$/m);
    expect(text).toMatch(/^capstan_runs_started_total 1$/m);
  });

  it('counts neither the runs of the host itself nor what a fork has copied', async () => {
    const metrics = createMetrics(realClock);
    const own = new TestRun(definition, { workflowId: 'capstan-goal' });
    metrics.appended({ run: own.run, events: own.events, before: undefined });
    const fork = { sourceRunId: 'run-0', mode: 'branch', fromSeq: 1, throughSeq: 1, seed: 'run-0' } as const;
    const branch = new TestRun(definition, { fork }).record(usage('small'));
    metrics.appended({ run: branch.run, events: branch.events, before: undefined });
    const text = await metrics.text();
    expect(text).toMatch(/^capstan_runs_started_total 1$/m);
    expect(text).not.toMatch(/^capstan_model_tokens_total\{/m);
  });

  it('counts what a preview asks of models, and not what a replay repeats', async () => {
    const metrics = createMetrics(realClock);
    const fork = { sourceRunId: 'run-0', mode: 'replay', fromSeq: 0, throughSeq: 1, seed: 'run-0' } as const;
    for (const preview of [undefined, 'prev-1']) {
      const { run, events } = new TestRun(definition, { fork: { ...fork, preview } }).record(usage('small'));
      metrics.appended({ run, events, before: 'running' });
    }
    expect(await metrics.text()).toMatch(/^capstan_model_tokens_total\{.*model="small",direction="output"\} 2$/m);
  });
});

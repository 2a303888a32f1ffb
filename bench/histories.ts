/** Long runs: what each of their events costs when it is recorded, taken over by a fork, and replayed. */
import { api, chain, endedRun, register, untilEnded } from './api.ts';
import {
  type Cost,
  costOf,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  partOf,
  withHost,
} from './growth.ts';
import type { BenchServer } from './servers.ts';

const SIZES = [500, 5_000] as const;
/** How many events are recorded, taken over or replayed each time. */
const EVENTS = 20_000;

/** A run starts and ends with an event, and each of its nodes does too. */
const workflowOf = (events: number): string => `chain-${nodesOf(events)}`;
const nodesOf = (events: number): number => (events - 2) / 2;

/** What an event costs in a long run, against what it costs in a short one. */
export const events: GrowthBench = {
  name: 'events',
  about: 'events of one run: cost of each, one run after the other',
  measure: (options) =>
    withHost(options, async (host) => {
      await register(host, SIZES.map(nodesOf).map(chain));
      const cost = (size: number): Promise<Cost> =>
        costOfEach(host, options, size, () => endedRun(host, workflowOf(size)));
      return [await growthOf(options, { what: 'events of a run', each: 'event', sizes: SIZES, cost })];
    }),
};

/** Forks that take over a whole history and have only their end to execute. */
export const forks: GrowthBench = {
  name: 'forks',
  about: 'forks of ended runs: cost of each event that is taken over',
  measure: (options) =>
    withHost(options, async (host) => {
      const sources = await endedRuns(host);
      const cost = (size: number): Promise<Cost> =>
        costOfEach(host, options, size, () => fork(host, sources.get(size)!, { mode: 'branch', fromSeq: size - 1 }));
      return [await growthOf(options, { what: 'events of a fork', each: 'event', sizes: SIZES, cost })];
    }),
};

/** Replays that decide everything again. */
export const replays: GrowthBench = {
  name: 'replays',
  about: 'replays of ended runs: cost of each event',
  measure: (options) =>
    withHost(options, async (host) => {
      const sources = await endedRuns(host);
      const cost = (size: number): Promise<Cost> =>
        costOfEach(host, options, size, () => fork(host, sources.get(size)!, { mode: 'replay' }));
      return [await growthOf(options, { what: 'events of a replay', each: 'event', sizes: SIZES, cost })];
    }),
};

/** Does something that costs so many events, again and again. */
function costOfEach(
  host: BenchServer,
  options: GrowthOptions,
  size: number,
  act: () => Promise<unknown>,
): Promise<Cost> {
  const times = partOf(options, EVENTS / size);
  return costOf(host, times * size, () => inParallel(times, 1, act));
}

/** An ended run of each size, by its number of events. */
async function endedRuns(host: BenchServer): Promise<ReadonlyMap<number, string>> {
  await register(host, SIZES.map(nodesOf).map(chain));
  const runs = new Map<number, string>();
  for (const size of SIZES) runs.set(size, await endedRun(host, workflowOf(size)));
  return runs;
}

/** Forks a run, and waits for the end of the fork. */
async function fork(host: BenchServer, source: string, how: object): Promise<void> {
  const { runId } = await api(host, 'POST', `/v1/runs/${source}:fork`, how);
  await untilEnded(host, runId);
}

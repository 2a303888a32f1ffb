/**
 * `npm run bench` measures the hot paths as ratios within one run: what a machine can do differs, what a design costs
 * does not. `npm run bench -- NAME` measures one of them: a name of `benchmarks`, of `byName` or of `WORKLOADS`. Those of
 * the last two take minutes and run only when they are named. `-- peers` compares with other programs, `-- growth`
 * measures all of `WORKLOADS` and `-- start` what hosts cost before they work; these write docs/performance.md.
 * `-- regression` compares with the limit program alone. `-- freeze`, `-- disk`, `-- backup`, `-- streams` and `-- skew` measure what faults cost.
 */
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { benchBackup } from './backup.ts';
import { benchConsole } from './console.ts';
import { benchDisk } from './disk.ts';
import { benchFeedback } from './feedback.ts';
import { benchFreeze } from './freeze.ts';
import { benchGrowthOf, GROWTH_ARGUMENTS, onStore } from './growth.ts';
import { benchGrowth } from './growth-report.ts';
import { events, forks } from './histories.ts';
import { type Loaded, load } from './load.ts';
import { benchLoopDelay } from './loop-delay.ts';
import { benchNoisyNeighbour } from './noisy-neighbour.ts';
import { benchOwnNodes } from './own-nodes.ts';
import { benchRegression, measurePeers, peerOptions } from './peers.ts';
import { benchPostgres } from './postgres.ts';
import { benchRedaction } from './redaction.ts';
import { writePeers } from './report.ts';
import { type BenchServer, KEY, REST_MS, startCapstan, startLimit } from './servers.ts';
import { benchSkew } from './skew.ts';
import { benchStart } from './start.ts';
import { median } from './statistics.ts';
import { benchSubscribers } from './subscribers.ts';
import { benchSynthesis } from './synthesis.ts';
import { benchTelemetry } from './telemetry.ts';
import { benchUnreadStreams } from './unread-streams.ts';
import { benchValidation } from './validation.ts';
import { measureRecovery } from './waiting.ts';
import { benchWorkers } from './workers.ts';
import { WORKLOADS } from './workloads.ts';

const CONCURRENCY = 32;
const RUNS = 6_000;
const ROUNDS = 5;
/** An idle host collects the garbage of its start within this time. */
const SETTLE_MS = 5_000;

const [only, ...args] = process.argv.slice(2);

const benchmarks: Record<string, () => Promise<void>> = {
  runs: benchRuns,
  telemetry: benchTelemetry,
  events: () => benchGrowthOf(events, args),
  forks: () => benchGrowthOf(forks, args),
  feed: benchFeed,
  feedback: benchFeedback,
  synthesis: benchSynthesis,
  redaction: benchRedaction,
  neighbour: benchNoisyNeighbour,
  validation: benchValidation,
  workers: benchWorkers,
  'own-nodes': benchOwnNodes,
  loop: benchLoopDelay,
  memory: benchMemory,
  console: benchConsole,
};
/** Those that run only when they are named, because they take long or need more. */
const byName: Record<string, (args: readonly string[]) => Promise<void>> = {
  ...Object.fromEntries(
    WORKLOADS.map((bench) => [bench.name, (args: readonly string[]) => benchGrowthOf(bench, args)]),
  ),
  growth: benchGrowth,
  start: benchStart,
  recovery: benchRecovery,
  subscribers: benchSubscribers,
  peers: benchPeers,
  regression: benchRegression,
  postgres: benchPostgres,
  freeze: benchFreeze,
  disk: benchDisk,
  backup: benchBackup,
  streams: benchUnreadStreams,
  skew: benchSkew,
};
if (only !== undefined && !(only in benchmarks) && !(only in byName)) throw new Error(`there is no benchmark ${only}`);
for (const [name, bench] of Object.entries(benchmarks)) if (only === undefined || only === name) await bench();
if (only !== undefined && !(only in benchmarks)) await byName[only]!(args);

/** Capstan beside the limit program and its peers; writes docs/performance.md. */
async function benchPeers(args: readonly string[]): Promise<void> {
  const options = peerOptions(args);
  console.log(`\nruns beside peers, ${options.rounds} rounds of ${options.seconds} s each`);
  writePeers(await measurePeers(options), options.docs);
}

/** How long the runs of a killed host take to their end. */
async function benchRecovery(args: readonly string[]): Promise<void> {
  await onStore(parseArgs({ args: [...args], options: GROWTH_ARGUMENTS }).values, measureRecovery);
}

/** Runs from POST to their end, a second: the host against the limit program, turn by turn. */
async function benchRuns(): Promise<void> {
  console.log(`\nruns to their end, concurrency ${CONCURRENCY}, ${ROUNDS} rounds of ${RUNS}`);
  const limit = await startLimit();
  const capstan = await startCapstan();
  const ratios: number[] = [];
  try {
    for (const server of [limit, capstan]) await loadRuns(server, RUNS);
    for (let round = 1; round <= ROUNDS; round++) {
      const most = await loadRuns(limit, RUNS);
      const ours = await loadRuns(capstan, RUNS);
      ratios.push(ours.runsPerSecond / most.runsPerSecond);
      console.log(`  round ${round}: limit ${show(most)}   capstan ${show(ours)}   ratio ${ratios.at(-1)!.toFixed(2)}`);
    }
  } finally {
    await Promise.all([limit.stop(), capstan.stop()]);
  }
  console.log(`  median ratio ${median(ratios).toFixed(2)} (at least 0.6 wanted)`);
}

/** What runs cost when somebody watches the tenant, against when nobody does, turn by turn. */
async function benchFeed(): Promise<void> {
  console.log(`\nruns of a tenant that is watched, ${ROUNDS} rounds of ${RUNS}`);
  const [alone, watched] = [await startCapstan(), await startCapstan()];
  const ratios: number[] = [];
  try {
    const feed = await fetch(`${watched.url}/v1/host/capstan/events`, { headers: { authorization: `Bearer ${KEY}` } });
    let received = 0;
    const take = (chunk: Uint8Array): void => {
      received += chunk.length;
    };
    void feed.body!.pipeTo(new WritableStream({ write: take })).catch(() => {});
    for (const server of [alone, watched]) await loadRuns(server, RUNS);
    for (let round = 1; round <= ROUNDS; round++) {
      const most = await loadRuns(alone, RUNS);
      const ours = await loadRuns(watched, RUNS);
      ratios.push(ours.runsPerSecond / most.runsPerSecond);
      console.log(`  round ${round}: alone ${show(most)}   watched ${show(ours)}   ratio ${ratios.at(-1)!.toFixed(2)}`);
    }
    console.log(`  the feed was ${(received / 1e6).toFixed(0)} MB`);
  } finally {
    await Promise.all([alone.stop(), watched.stop()]);
  }
  console.log(`  median ratio ${median(ratios).toFixed(2)} (at least 0.8 wanted)`);
}

function show({ runsPerSecond, p50Ms, p99Ms }: Loaded): string {
  return `${runsPerSecond.toFixed(0)}/s (p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms)`;
}

function loadRuns({ url }: BenchServer, runs: number): Promise<Loaded> {
  return load({ url, key: KEY, way: 'accepted', concurrency: CONCURRENCY, runs });
}

/** Memory at rest, and what is left of finished runs. */
async function benchMemory(): Promise<void> {
  console.log('\nmemory');
  const idle = await startCapstan({ CAPSTAN_CONFORMANCE: '0' });
  await setTimeout(SETTLE_MS);
  console.log(`  at rest ${(await residentMb(idle)).toFixed(0)} MB (under 150 wanted)`);
  await idle.stop();
  const capstan = await startCapstan();
  try {
    for (let thousands = 10; thousands <= 50; thousands += 10) {
      await loadRuns(capstan, 10_000);
      console.log(`  after ${thousands},000 finished runs ${(await residentMb(capstan)).toFixed(0)} MB`);
    }
    await setTimeout(REST_MS);
    console.log(`  after a rest ${(await residentMb(capstan)).toFixed(0)} MB`);
  } finally {
    await capstan.stop();
  }
}

async function residentMb({ url }: BenchServer): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^capstan_process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / 1e6;
}

/**
 * `npm run bench` measures the hot paths as ratios within one run: what a machine can do differs, what a design costs
 * does not. `npm run bench -- runs`, `-- telemetry`, `-- events`, `-- forks`, `-- feed`, `-- feedback`,
 * `-- synthesis`, `-- redaction`, `-- neighbour`, `-- validation`, `-- workers`, `-- own-nodes`, `-- loop`,
 * `-- memory`, `-- start` or `-- console` measures one of them. `-- peers` compares with other programs and
 * `-- regression` with the limit program alone; `-- steps`, `-- fan-out`, `-- for-each`, `-- approvals`, `-- recovery`,
 * `-- subscribers`, `-- retries` and `-- lists` say whether cost grows no faster than what is asked for, `-- postgres`
 * what a run costs there. `-- freeze`, `-- disk`, `-- backup`, `-- streams` and `-- skew` measure what faults cost. These
 * take minutes and run only when they are named.
 */
import { setTimeout } from 'node:timers/promises';
import { api, chain, endedRun } from './api.ts';
import { benchBackup } from './backup.ts';
import { benchConsole } from './console.ts';
import { benchDisk } from './disk.ts';
import { benchFeedback } from './feedback.ts';
import { benchFreeze } from './freeze.ts';
import { type Loaded, load } from './load.ts';
import { benchLoopDelay } from './loop-delay.ts';
import { benchNoisyNeighbour } from './noisy-neighbour.ts';
import { benchOwnNodes } from './own-nodes.ts';
import { benchRegression, measurePeers, peerOptions } from './peers.ts';
import { benchPostgres } from './postgres.ts';
import { benchRedaction } from './redaction.ts';
import { writeReport } from './report.ts';
import { benchLists, benchRetries } from './requests.ts';
import { type BenchServer, KEY, startCapstan, startLimit } from './servers.ts';
import { benchFanOut, benchForEach, benchSteps } from './shapes.ts';
import { benchSkew } from './skew.ts';
import { benchStart } from './start.ts';
import { median } from './statistics.ts';
import { benchSubscribers } from './subscribers.ts';
import { benchSynthesis } from './synthesis.ts';
import { benchTelemetry } from './telemetry.ts';
import { benchUnreadStreams } from './unread-streams.ts';
import { benchValidation } from './validation.ts';
import { benchApprovals, benchRecovery } from './waiting.ts';
import { benchWorkers } from './workers.ts';

const CONCURRENCY = 32;
const RUNS = 6_000;
const ROUNDS = 5;
/** An idle host collects the garbage of its start within this time. */
const SETTLE_MS = 5_000;
/** Longer than the rest after which a host gives memory back that a load took (`src/system/memory.ts`). */
const REST_MS = 310_000;

const benchmarks: Record<string, () => Promise<void>> = {
  runs: benchRuns,
  telemetry: benchTelemetry,
  events: benchEvents,
  forks: benchForks,
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
  start: benchStart,
  console: benchConsole,
};
/** Those that run only when they are named, because they take long or need more. */
const byName: Record<string, (args: readonly string[]) => Promise<void>> = {
  peers: benchPeers,
  regression: benchRegression,
  steps: benchSteps,
  'fan-out': benchFanOut,
  'for-each': benchForEach,
  approvals: benchApprovals,
  recovery: benchRecovery,
  subscribers: benchSubscribers,
  retries: benchRetries,
  lists: benchLists,
  postgres: benchPostgres,
  freeze: benchFreeze,
  disk: benchDisk,
  backup: benchBackup,
  streams: benchUnreadStreams,
  skew: benchSkew,
};
const [only, ...args] = process.argv.slice(2);
if (only !== undefined && !(only in benchmarks) && !(only in byName)) throw new Error(`there is no benchmark ${only}`);
for (const [name, bench] of Object.entries(benchmarks)) if (only === undefined || only === name) await bench();
if (only !== undefined) await byName[only]?.(args);

/** Capstan beside the limit program and its peers; writes docs/performance.md. */
async function benchPeers(args: readonly string[]): Promise<void> {
  const options = peerOptions(args);
  console.log(`\nruns beside peers, ${options.rounds} rounds of ${options.seconds} s each`);
  writeReport(await measurePeers(options), options.docs);
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

/** What an event costs in a long run, against what it costs in a short one. */
async function benchEvents(): Promise<void> {
  console.log('\ncost of an event in one run with 50 events and in one with 5,000');
  const capstan = await startCapstan();
  try {
    for (const nodes of [24, 2_499]) await api(capstan, 'POST', '/v1/host/capstan/workflows', chain(nodes));
    const ratios: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const short = await costPerEvent(capstan, 24, 40);
      const long = await costPerEvent(capstan, 2_499, 1);
      if (round === 0) continue;
      ratios.push(long / short);
      console.log(
        `  round ${round}: short ${short.toFixed(1)} µs   long ${long.toFixed(1)} µs   ratio ${(long / short).toFixed(2)}`,
      );
    }
    console.log(`  median ratio ${median(ratios).toFixed(2)} (at most 1.5 wanted)`);
  } finally {
    await capstan.stop();
  }
}

/** What each event of a history costs a fork that takes it over, where there are few of them and where there are many. */
async function benchForks(): Promise<void> {
  console.log('\nforks of a run with 5,000 events: cost of each event taken over');
  const capstan = await startCapstan();
  try {
    await api(capstan, 'POST', '/v1/host/capstan/workflows', chain(2_499));
    const source = await endedRun(capstan, 'chain-2499');
    const ratios: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const few = await costOfFork(capstan, source, 500);
      const many = await costOfFork(capstan, source, 5_000);
      if (round === 0) continue;
      ratios.push(many / few);
      console.log(
        `  round ${round}: of 500 ${few.toFixed(1)} µs   of 5,000 ${many.toFixed(1)} µs   ratio ${(many / few).toFixed(2)}`,
      );
    }
    console.log(`  median ratio ${median(ratios).toFixed(2)} (at most 1.5 wanted)`);
  } finally {
    await capstan.stop();
  }
}

/** Microseconds for each event, until the answer to a fork is there. The fork itself is cancelled. */
async function costOfFork(server: BenchServer, runId: string, fromSeq: number): Promise<number> {
  const started = performance.now();
  const fork = await api(server, 'POST', `/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq });
  const cost = ((performance.now() - started) * 1_000) / fromSeq;
  await api(server, 'POST', `/v1/runs/${fork.runId}/cancel`, {});
  return cost;
}

/** Microseconds for each event, from POST to the end, over some runs one after the other. */
async function costPerEvent(server: BenchServer, nodes: number, runs: number): Promise<number> {
  const started = performance.now();
  for (let run = 0; run < runs; run++) await endedRun(server, `chain-${nodes}`);
  return ((performance.now() - started) * 1_000) / (runs * (2 * nodes + 2));
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

/**
 * `npm run bench` measures the hot paths as ratios within one run: what a machine can do differs, what a design costs
 * does not. `npm run bench -- runs`, `-- telemetry`, `-- events`, `-- forks`, `-- feed`, `-- feedback`,
 * `-- synthesis`, `-- redaction`, `-- neighbour`, `-- validation`, `-- workers`, `-- loop`,
 * `-- memory`, `-- start` or `-- console` measures one of them.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { benchConsole } from './console.ts';
import { benchFeedback } from './feedback.ts';
import { benchLoopDelay } from './loop-delay.ts';
import { benchNoisyNeighbour } from './noisy-neighbour.ts';
import { benchRedaction } from './redaction.ts';
import { type BenchServer, KEY, startCapstan, startLimit } from './servers.ts';
import { benchStart } from './start.ts';
import { benchSynthesis } from './synthesis.ts';
import { benchValidation } from './validation.ts';
import { benchWorkers } from './workers.ts';

const CONCURRENCY = 32;
const RUNS = 6_000;
const ROUNDS = 5;
/** Long enough for an idle host to have put its memory in order. */
const SETTLE_MS = 5_000;

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
  loop: benchLoopDelay,
  memory: benchMemory,
  start: benchStart,
  console: benchConsole,
};
const [only] = process.argv.slice(2);
for (const [name, bench] of Object.entries(benchmarks)) if (only === undefined || only === name) await bench();

interface Load {
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Runs from POST to their end, a second: the host against the limit program, turn by turn. */
async function benchRuns(): Promise<void> {
  console.log(`\nruns to their end, concurrency ${CONCURRENCY}, ${ROUNDS} rounds of ${RUNS}`);
  const limit = await startLimit();
  const capstan = await startCapstan();
  const ratios: number[] = [];
  try {
    for (const server of [limit, capstan]) await load(server, RUNS);
    for (let round = 1; round <= ROUNDS; round++) {
      const most = await load(limit, RUNS);
      const ours = await load(capstan, RUNS);
      ratios.push(ours.runsPerSecond / most.runsPerSecond);
      console.log(`  round ${round}: limit ${show(most)}   capstan ${show(ours)}   ratio ${ratios.at(-1)!.toFixed(2)}`);
    }
  } finally {
    await Promise.all([limit.stop(), capstan.stop()]);
  }
  console.log(`  median ratio ${median(ratios).toFixed(2)} (at least 0.35 wanted)`);
}

/** What runs cost when a tenth of them is traced, and when all are, against when none is, turn by turn. */
async function benchTelemetry(): Promise<void> {
  console.log(`\nruns with traces to a collector, ${ROUNDS} rounds of ${RUNS}`);
  const collector = createServer((request, response) => request.resume().on('end', () => response.end()));
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const traced = (ratio: string): Promise<BenchServer> =>
    startCapstan({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: ratio });
  const [off, tenth, all] = [await startCapstan(), await traced('0.1'), await traced('1')];
  const ratios: number[] = [];
  try {
    for (const server of [off, tenth, all]) await load(server, RUNS);
    for (let round = 1; round <= ROUNDS; round++) {
      const [none, some, most] = [await load(off, RUNS), await load(tenth, RUNS), await load(all, RUNS)];
      ratios.push(some.runsPerSecond / none.runsPerSecond);
      console.log(
        `  round ${round}: off ${show(none)}   0.1 ${show(some)}   1 ${show(most)}   ratio ${ratios.at(-1)!.toFixed(2)}`,
      );
    }
  } finally {
    await Promise.all([off.stop(), tenth.stop(), all.stop()]);
    collector.close();
  }
  console.log(`  median ratio ${median(ratios).toFixed(2)} (at least 0.95 wanted)`);
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
    for (const server of [alone, watched]) await load(server, RUNS);
    for (let round = 1; round <= ROUNDS; round++) {
      const most = await load(alone, RUNS);
      const ours = await load(watched, RUNS);
      ratios.push(ours.runsPerSecond / most.runsPerSecond);
      console.log(`  round ${round}: alone ${show(most)}   watched ${show(ours)}   ratio ${ratios.at(-1)!.toFixed(2)}`);
    }
    console.log(`  the feed was ${(received / 1e6).toFixed(0)} MB`);
  } finally {
    await Promise.all([alone.stop(), watched.stop()]);
  }
  console.log(`  median ratio ${median(ratios).toFixed(2)} (at least 0.8 wanted)`);
}

function show({ runsPerSecond, p50Ms, p99Ms }: Load): string {
  return `${runsPerSecond.toFixed(0)}/s (p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms)`;
}

async function load({ url }: BenchServer, runs: number): Promise<Load> {
  const script = fileURLToPath(new URL('./load.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, url, KEY, String(runs), String(CONCURRENCY)]);
  return JSON.parse(stdout) as Load;
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

async function endedRun(server: BenchServer, workflowId: string): Promise<string> {
  const { runId } = await api(server, 'POST', '/v1/runs', { workflowId });
  for (let last = -1, isComplete = false; !isComplete; ) {
    const after = last < 0 ? '' : `?lastSequence=${last}`;
    const polled = await api(server, 'GET', `/v1/runs/${runId}/events/poll${after}`);
    isComplete = polled.isComplete;
    last = polled.lastEventSeq;
  }
  return runId;
}

/** Microseconds for each event, from POST to the end, over some runs one after the other. */
async function costPerEvent(server: BenchServer, nodes: number, runs: number): Promise<number> {
  const started = performance.now();
  for (let run = 0; run < runs; run++) await endedRun(server, `chain-${nodes}`);
  return ((performance.now() - started) * 1_000) / (runs * (2 * nodes + 2));
}

function chain(length: number): WorkflowDefinition {
  const ids = Array.from({ length }, (_, index) => `n${index}`);
  return {
    id: `chain-${length}`,
    name: `${length} nodes in a line`,
    version: '1',
    nodes: ids.map((id, index) => ({
      id,
      typeId: 'core.noop',
      name: id,
      position: { x: index, y: 0 },
      config: {},
      inputs: {},
    })),
    edges: ids.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: ids[index]!, targetNodeId: id })),
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
  };
}

/** Memory at rest, and what is left of finished runs. */
async function benchMemory(): Promise<void> {
  console.log('\nmemory');
  const idle = await startCapstan({ CAPSTAN_CONFORMANCE: '0' });
  console.log(`  at rest ${(await residentMb(idle)).toFixed(0)} MB (under 150 wanted)`);
  await idle.stop();
  const capstan = await startCapstan();
  try {
    for (let thousands = 10; thousands <= 50; thousands += 10) {
      await load(capstan, 10_000);
      console.log(`  after ${thousands},000 finished runs ${(await residentMb(capstan)).toFixed(0)} MB`);
    }
  } finally {
    await capstan.stop();
  }
}

async function residentMb({ url }: BenchServer): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^capstan_process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / 1e6;
}

// biome-ignore lint/suspicious/noExplicitAny: a client for a handful of replies
async function api({ url }: BenchServer, method: string, path: string, body?: unknown): Promise<any> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${KEY}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

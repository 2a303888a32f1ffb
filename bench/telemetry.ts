/** What telemetry costs a run: its processor time, and runs a second, each kind of telemetry against none. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { load } from './load.ts';
import { cpuOfThreads } from './processor.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';
import { median, spread } from './statistics.ts';

const CONCURRENCY = 16;
/** Processes differ by a few percent for as long as they live, so each kind is measured in several of them. */
const PROCESSES = 5;
/** What the rest of the machine does changes within seconds, so rounds are many and short. */
const ROUNDS = 8;
const RUNS = 400;
const WARM_UP_RUNS = 3_000;

/** The environment of each kind. The second `off` shows how far two hosts are apart that do the same. */
const KINDS: Readonly<Record<string, Record<string, string> | undefined>> = {
  off: undefined,
  'off again': undefined,
  metrics: { OTEL_TRACES_EXPORTER: 'none' },
  'traces 0.1': { OTEL_TRACES_SAMPLER_ARG: '0.1' },
  'traces 1.0': { OTEL_TRACES_SAMPLER_ARG: '1' },
};

interface Measured {
  readonly name: string;
  readonly server: BenchServer;
  /** Runs a second, round by round. */
  readonly rates: number[];
  /** Microseconds of the processor for a run, round by round. */
  readonly costs: number[];
}

interface Ratios {
  readonly rate: number[];
  readonly cpu: number[];
}

/**
 * Measures hosts that push metrics, that trace a tenth of the runs besides and that trace all of them, beside one that
 * does neither. All have the same load at the same time, so that they meet the same neighbours, caches and clock of the
 * processor. The time that they use of it says more than how fast they are, because others take that away.
 */
export async function benchTelemetry(): Promise<void> {
  console.log(`\nruns with metrics and traces to a collector, ${PROCESSES} × ${ROUNDS} rounds of ${RUNS}`);
  const ratios = new Map<string, Ratios>();
  for (let process = 1; process <= PROCESSES; process++) {
    await withCollector(async (endpoint) => {
      const all = await startKinds(endpoint);
      try {
        await measure(all);
      } finally {
        await Promise.all(all.map(({ server }) => server.stop()));
      }
      addRatios(all, ratios);
      const told = all.map((each) => `${each.name} ${median(each.costs).toFixed(0)} µs`);
      console.log(`  hosts ${process}: ${told.join('   ')}`);
    });
  }
  console.log(
    '  against off: runs a second, and processor time for a run, median of the hosts, with the least and the most',
  );
  for (const [name, { rate, cpu }] of ratios)
    console.log(`  ${name.padEnd(10)}  ${spread(rate, 3)}   ${spread(cpu, 3)}`);
  console.log('  at most 1.05 of the processor time wanted with traces 0.1');
}

async function withCollector(act: (endpoint: string) => Promise<void>): Promise<void> {
  const collector = createServer((request, response) => request.resume().on('end', () => response.end()));
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  try {
    await act(`http://127.0.0.1:${(collector.address() as AddressInfo).port}`);
  } finally {
    collector.close();
  }
}

async function startKinds(endpoint: string): Promise<Measured[]> {
  const all: Measured[] = [];
  for (const [name, environment] of Object.entries(KINDS)) {
    const sending = environment && {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_METRIC_EXPORT_INTERVAL: '2000',
      ...environment,
    };
    all.push({ name, server: await startCapstan(sending), rates: [], costs: [] });
  }
  return all;
}

async function measure(all: readonly Measured[]): Promise<void> {
  await Promise.all(all.map(({ server }) => loadRuns(server, WARM_UP_RUNS)));
  let before = all.map(({ server }) => cpuOfThreads(server.pid));
  for (let round = 1; round <= ROUNDS; round++) {
    const rates = await Promise.all(all.map(({ server }) => loadRuns(server, RUNS)));
    const after = all.map(({ server }) => cpuOfThreads(server.pid));
    for (const [index, { rates: ofHost, costs }] of all.entries()) {
      ofHost.push(rates[index]!);
      // From one end to the next: what is sent between rounds is part of the cost.
      costs.push((after[index]! - before[index]!) / RUNS);
    }
    before = after;
  }
}

async function loadRuns({ url }: BenchServer, runs: number): Promise<number> {
  const { runsPerSecond } = await load({ url, key: KEY, way: 'accepted', concurrency: CONCURRENCY, runs });
  return runsPerSecond;
}

/** The others are held against the mean of both hosts that send nothing, which is steadier than one of them. */
function addRatios([off, again, ...others]: readonly Measured[], ratios: Map<string, Ratios>): void {
  const pairs = [[again!, [off!]] as const, ...others.map((each) => [each, [off!, again!]] as const)];
  for (const [each, bases] of pairs) {
    const { rate, cpu } = ratios.get(each.name) ?? { rate: [], cpu: [] };
    // One value for each process: its rounds are not independent, because processes differ for as long as they live.
    rate.push(median(each.rates.map((value, round) => value / mean(bases.map(({ rates }) => rates[round]!)))));
    cpu.push(median(each.costs.map((value, round) => value / mean(bases.map(({ costs }) => costs[round]!)))));
    ratios.set(each.name, { rate, cpu });
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** What telemetry costs a run: processor time and throughput, each kind of telemetry against none, turn by turn. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { load } from './load.ts';
import { cpuOfThreads } from './processor.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';
import { median, medianInterval } from './statistics.ts';

const CONCURRENCY = 32;
/** Processes differ by a few percent for as long as they live, so each kind is measured in several of them. */
const PROCESSES = 3;
/** What the rest of the machine does changes within seconds, so rounds are many and short. */
const ROUNDS = 12;
const RUNS = 500;
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
  /** Microseconds of the processor that the host had used before each round, and at last. */
  readonly readings: number[];
}

interface Ratios {
  readonly rate: number[];
  readonly cpu: number[];
}

/**
 * Measures hosts that push metrics, that trace a tenth of the runs besides and that trace all of them, beside one that
 * does neither. The processor time is the steadier of the two numbers: others on the machine take time away, but not
 * the host's own.
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
      note(all, ratios);
      const told = all.map((each) => `${each.name} ${median(costs(each)).toFixed(0)} µs`);
      console.log(`  hosts ${process}: ${told.join('   ')}`);
    });
  }
  console.log('  against off: runs a second, and processor time for a run, as medians with 95 % intervals');
  for (const [name, { rate, cpu }] of ratios) console.log(`  ${name.padEnd(10)}  ${told(rate)}   ${told(cpu)}`);
  console.log('  at most 1.05 of the processor time, at least 0.95 of the runs a second wanted with traces 0.1');
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
    const sending = environment && { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...environment };
    all.push({ name, server: await startCapstan(sending), rates: [], readings: [] });
  }
  return all;
}

/** A host's cost of a round is read before its next one, because it sends what it has recorded later. */
async function measure(all: readonly Measured[]): Promise<void> {
  for (const { server } of all) await loadRuns(server, WARM_UP_RUNS);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { server, rates, readings } of turned(all, round)) {
      readings.push(cpuOfThreads(server.pid));
      if (round < ROUNDS) rates.push(await loadRuns(server, RUNS));
    }
  }
}

/** Each round begins with another host, so that none is always the first. */
function turned<T>(all: readonly T[], by: number): T[] {
  return [...all.slice(by % all.length), ...all.slice(0, by % all.length)];
}

async function loadRuns({ url }: BenchServer, runs: number): Promise<number> {
  const { runsPerSecond } = await load({ url, key: KEY, way: 'accepted', concurrency: CONCURRENCY, runs });
  return runsPerSecond;
}

/** Microseconds of the processor for a run, round by round. */
function costs({ readings }: Measured): number[] {
  return readings.slice(1).map((reading, index) => (reading - readings[index]!) / RUNS);
}

function note([off, ...others]: readonly Measured[], ratios: Map<string, Ratios>): void {
  for (const each of others) {
    const { rate, cpu } = ratios.get(each.name) ?? { rate: [], cpu: [] };
    rate.push(...each.rates.map((value, index) => value / off!.rates[index]!));
    cpu.push(...costs(each).map((value, index) => value / costs(off!)[index]!));
    ratios.set(each.name, { rate, cpu });
  }
}

function told(ratios: readonly number[]): string {
  const [low, high] = medianInterval(ratios);
  return `${median(ratios).toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
}

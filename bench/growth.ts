/** Measures whether cost grows in proportion: the same work in two sizes on one host, in turn, round by round. */
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { LazyPostgres } from './postgres.ts';
import { cpuOfTree } from './processor.ts';
import { type BenchServer, startCapstan } from './servers.ts';
import { median, spread } from './statistics.ts';

/** What some units of work cost a server. */
export interface Cost {
  readonly units: number;
  /** Processor time of the server and its database for each unit, in microseconds. */
  readonly cpuUs: number;
  /** Until all of it was done. */
  readonly seconds: number;
}

/** Does some work, and says what each unit of it cost the server. */
export async function costOf(server: BenchServer, units: number, act: () => Promise<unknown>): Promise<Cost> {
  const cpuMs = (): number => cpuOfTree(server.pid) + (server.databasePid ? cpuOfTree(server.databasePid) : 0);
  const [before, startedAt] = [cpuMs(), performance.now()];
  await act();
  return { units, cpuUs: ((cpuMs() - before) * 1_000) / units, seconds: (performance.now() - startedAt) / 1_000 };
}

/** Longer than what a run leaves for later takes to begin, such as the sealing of its audit records. */
const AFTERMATH_MS = 1_300;

/** As `costOf`, with what the host does about it shortly afterwards: few units would be over before that begins. */
export function wholeCostOf(server: BenchServer, units: number, act: () => Promise<unknown>): Promise<Cost> {
  return costOf(server, units, async () => {
    await act();
    await pause(AFTERMATH_MS);
  });
}

/** Ten times as much is to cost at most eleven times as much. */
export const GROWTH_MAX = 1.1;

/** Work that is measured in two sizes. */
interface Work {
  /** What there is more of, such as `steps of a run`. */
  readonly what: string;
  /** What the cost is the cost of, such as `step`. */
  readonly each: string;
  readonly sizes: readonly [few: number, many: number];
  readonly cost: (size: number) => Promise<Cost>;
}

/** What one size cost. The lists have a value for each round. */
export interface SizeCosts {
  readonly size: number;
  /** Processor time for each unit, in microseconds. */
  readonly cpuUs: number[];
  /** Until all of it was done. */
  readonly seconds: number[];
}

/** What units of some work cost where there are few of something and where there are many. */
export interface Growth {
  readonly what: string;
  readonly each: string;
  readonly few: SizeCosts;
  readonly many: SizeCosts;
}

/** Measures both sizes in turn, after each was done once to compile the code and fill the caches. */
export async function growthOf({ rounds }: GrowthOptions, { what, each, sizes, cost }: Work): Promise<Growth> {
  const [few, many] = sizes.map((size): SizeCosts => ({ size, cpuUs: [], seconds: [] })) as [SizeCosts, SizeCosts];
  for (const { size } of [few, many]) await cost(size);
  for (let round = 0; round < rounds; round++) {
    for (const side of [few, many]) {
      const { cpuUs, seconds } = await cost(side.size);
      side.cpuUs.push(cpuUs);
      side.seconds.push(seconds);
    }
  }
  const growth = { what, each, few, many };
  printGrowth(growth);
  return growth;
}

/** What a unit cost with many relative to what it cost with few, round by round. */
export function ratiosOf({ few, many }: Growth): number[] {
  return many.cpuUs.map((cpuUs, round) => cpuUs / few.cpuUs[round]!);
}

/** Prints what units cost where there are few and where there are many, and whether that is the same. */
function printGrowth(growth: Growth): void {
  const show = ({ size, cpuUs, seconds }: SizeCosts): string =>
    `${size.toLocaleString('en')}: ${median(cpuUs).toFixed(0)} µs for each ${growth.each}, ${median(seconds).toFixed(2)} s`;
  const ratio = spread(ratiosOf(growth), 2);
  console.log(
    `  ${growth.what}: ${show(growth.few)}   ${show(growth.many)}   ratio ${ratio}, at most ${GROWTH_MAX} wanted`,
  );
}

/** One kind of work whose growth is measured. */
export interface GrowthBench {
  /** Its name on the command line. */
  readonly name: string;
  readonly about: string;
  /** Whether its history is written past the host, which is possible on SQLite alone. */
  readonly isSqliteOnly?: true;
  measure(options: GrowthOptions): Promise<Growth[]>;
}

/** How growth is measured. */
export interface GrowthOptions {
  readonly rounds: number;
  /** Less than 1 to see in little time that everything works; such figures mean nothing. */
  readonly part: number;
  /** A host on the store that is measured. */
  startHost(environment?: Record<string, string>): Promise<BenchServer>;
}

/** That part of a number which is measured; a whole number above zero. */
export function partOf({ part }: GrowthOptions, count: number): number {
  return Math.max(1, Math.round(count * part));
}

/** Does something with a host of its own. */
export async function withHost<T>(
  { startHost }: GrowthOptions,
  act: (host: BenchServer) => Promise<T>,
  environment: Record<string, string> = {},
): Promise<T> {
  const host = await startHost(environment);
  try {
    return await act(host);
  } finally {
    await host.stop();
  }
}

/** The command-line options that every measurement of growth understands. */
export const GROWTH_ARGUMENTS = {
  rounds: { type: 'string', default: '3' },
  part: { type: 'string', default: '1' },
  postgres: { type: 'boolean', default: false },
} as const;

/** Measures growth on the store that is asked for: SQLite, or a PostgreSQL that is started for it. */
export async function onStore<T>(
  { rounds, part, postgres }: { readonly rounds: string; readonly part: string; readonly postgres: boolean },
  act: (options: GrowthOptions) => Promise<T>,
): Promise<T> {
  const amounts = { rounds: Number(rounds), part: Number(part) };
  if (!postgres) return act({ ...amounts, startHost: startCapstan });
  const server = new LazyPostgres();
  try {
    return await act({ ...amounts, startHost: (environment) => server.startCapstan(environment) });
  } finally {
    await server.stop();
  }
}

/** Measures one kind of work alone, as in `npm run bench -- steps --postgres`. */
export async function benchGrowthOf(bench: GrowthBench, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: GROWTH_ARGUMENTS });
  if (values.postgres && bench.isSqliteOnly) throw new Error(`${bench.name} can be measured on SQLite alone`);
  await onStore(values, (options) => measureGrowth(bench, options));
}

/** Measures one kind of work, and prints what it is and what it cost. */
export function measureGrowth(bench: GrowthBench, options: GrowthOptions): Promise<Growth[]> {
  console.log(`\n${bench.about}`);
  return bench.measure(options);
}

/** Calls `act` for each number below `count`, some of them at a time. */
export async function inParallel(
  count: number,
  concurrency: number,
  act: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const line = async (): Promise<void> => {
    while (next < count) await act(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, line));
}

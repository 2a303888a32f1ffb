/** Hosts with many runs and many tenants: what a run costs there. */
import { endedRun } from './api.ts';
import {
  type Cost,
  costOf,
  type Growth,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  partOf,
  wholeCostOf,
  withHost,
} from './growth.ts';
import type { BenchServer } from './servers.ts';

const CONCURRENCY = 32;
const RUNS = 6_000;
/** Rounds of this for each of the others: tenants cost less than what rounds differ by. */
const ROUNDS = 3;
const SIZES = [
  [1, 10],
  [10, 100],
  [100, 1_000],
] as const;

/** The key of a tenant, by its number. */
export const keyOf = (tenant: number): string => `bench-key-of-tenant-${tenant}`;
/** The name of a tenant, by its number. */
export const tenantOf = (tenant: number): string => `tenant-${tenant}`;

/** The setting that gives so many tenants a key each. */
export function tenantKeys(count: number): Record<string, string> {
  const keys = Array.from({ length: count }, (_, tenant) => ({
    key: keyOf(tenant),
    tenant: tenantOf(tenant),
    principal: 'bench',
    role: 'owner',
  }));
  return { CAPSTAN_API_KEYS: JSON.stringify(keys) };
}

/** The same number of runs, spread over more and more tenants, on hosts that have so many. */
export const tenants: GrowthBench = {
  name: 'tenants',
  about: 'runs that are spread over tenants: cost of each run',
  measure: async (options) => {
    const growths: Growth[] = [];
    for (const sizes of SIZES)
      growths.push(await withHost(options, (host) => tenantGrowth(host, options, sizes), tenantKeys(sizes[1])));
    return growths;
  },
};

function tenantGrowth(host: BenchServer, options: GrowthOptions, sizes: readonly [number, number]): Promise<Growth> {
  const runs = partOf(options, RUNS);
  const cost = (tenants: number): Promise<Cost> =>
    costOf(host, runs, () =>
      inParallel(runs, CONCURRENCY, (index) => endedRun(host, 'conformance-noop', keyOf(index % tenants))),
    );
  const rounds = options.rounds * ROUNDS;
  return growthOf({ ...options, rounds }, { what: 'tenants', each: 'run', sizes, cost });
}

/** Runs, and ten times as many of them in a row. */
export const manyRuns: GrowthBench = {
  name: 'many-runs',
  about: 'runs of one node, 32 at once: cost of each',
  measure: (options) =>
    withHost(options, async (host) => {
      const cost = (runs: number): Promise<Cost> =>
        wholeCostOf(host, runs, () => inParallel(runs, CONCURRENCY, () => endedRun(host, 'conformance-noop')));
      const sizes = [partOf(options, 400), partOf(options, 4_000)] as const;
      return [await growthOf(options, { what: 'runs', each: 'run', sizes, cost })];
    }),
};

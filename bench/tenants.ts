/** Hosts with many runs and many tenants: what a run costs there. */
import { endedRun } from './api.ts';
import { type Cost, costOf, type GrowthBench, growthOf, inParallel, partOf, wholeCostOf, withHost } from './growth.ts';

const CONCURRENCY = 32;
const RUNS = 6_000;
const TENANTS_MAX = 1_000;

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

/** The same number of runs, spread over more and more tenants. */
export const tenants: GrowthBench = {
  name: 'tenants',
  about: 'runs that are spread over tenants: cost of each run',
  measure: (options) =>
    withHost(
      options,
      async (host) => {
        const runs = partOf(options, RUNS);
        const cost = (tenants: number): Promise<Cost> =>
          costOf(host, runs, () =>
            inParallel(runs, CONCURRENCY, (index) => endedRun(host, 'conformance-noop', keyOf(index % tenants))),
          );
        const work = { what: 'tenants', each: 'run', cost };
        return [
          await growthOf(options, { ...work, sizes: [1, 10] }),
          await growthOf(options, { ...work, sizes: [10, 100] }),
          await growthOf(options, { ...work, sizes: [100, TENANTS_MAX] }),
        ];
      },
      tenantKeys(TENANTS_MAX),
    ),
};

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

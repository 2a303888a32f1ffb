import { parseArgs } from 'node:util';
import { GROWTH_ARGUMENTS, type Growth, type GrowthBench, measureGrowth, onStore } from './growth.ts';
import { coresOfOthers, untilQuiet } from './processor.ts';
import { type Provenance, provenance } from './provenance.ts';
import { writeGrowth } from './report.ts';
import { measureStreams, type Streams } from './subscribers.ts';
import { measureRecovery, type Recovery } from './waiting.ts';
import { WORKLOADS } from './workloads.ts';

/** What a whole measurement of growth found. */
export interface GrowthReport extends Provenance {
  readonly store: 'SQLite' | 'PostgreSQL';
  readonly rounds: number;
  /** Cores that others used meanwhile. */
  readonly othersCores: number;
  readonly growths: readonly Growth[];
  readonly recovery?: Recovery;
  readonly streams?: Streams;
}

const OPTIONS = {
  ...GROWTH_ARGUMENTS,
  /** The names of the workloads to measure, or `recovery` or `streams`; all by default. */
  only: { type: 'string', multiple: true, default: [] as string[] },
  /** Seconds to wait for quiet cores before each workload. */
  patience: { type: 'string', default: '10' },
  /** The folder that the page is written to, if not that of the repository. */
  docs: { type: 'string' },
} as const;

/** Measures the growth of everything, and writes docs/performance.md. */
export async function benchGrowth(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const isWanted = (name: string): boolean => values.only.length === 0 || values.only.includes(name);
  const isPossible = ({ isSqliteOnly }: GrowthBench): boolean => !(isSqliteOnly && values.postgres);
  const workloads = WORKLOADS.filter((bench) => isWanted(bench.name) && isPossible(bench));
  const patienceMs = Number(values.patience) * 1_000;
  const { result, cores } = await coresOfOthers(() =>
    onStore(values, async (options) => {
      const growths: Growth[] = [];
      for (const bench of workloads)
        growths.push(...(await whenQuiet(patienceMs, () => measureGrowth(bench, options))));
      const recovery = isWanted('recovery') && (await whenQuiet(patienceMs, () => measureRecovery(options)));
      const streams = isWanted('streams') && (await whenQuiet(patienceMs, () => measureStreams(options)));
      return { growths, ...(recovery && { recovery }), ...(streams && { streams }) };
    }),
  );
  const store = values.postgres ? 'PostgreSQL' : 'SQLite';
  const measured = { rounds: Number(values.rounds), othersCores: cores, ...result };
  writeGrowth({ ...provenance(), store, ...measured }, values.docs);
}

async function whenQuiet<T>(patienceMs: number, act: () => Promise<T>): Promise<T> {
  await untilQuiet(patienceMs);
  return act();
}

import { cpuOfTree } from './processor.ts';
import type { BenchServer } from './servers.ts';

/** What some units of work cost a server. */
export interface Cost {
  readonly units: number;
  /** Processor time of the server for each unit, in microseconds. */
  readonly cpuUs: number;
  /** Until all of it was done. */
  readonly seconds: number;
}

/** Does some work, and says what each unit of it cost the server. */
export async function costOf(server: BenchServer, units: number, act: () => Promise<unknown>): Promise<Cost> {
  const [before, startedAt] = [cpuOfTree(server.pid), performance.now()];
  await act();
  const cpuUs = ((cpuOfTree(server.pid) - before) * 1_000) / units;
  return { units, cpuUs, seconds: (performance.now() - startedAt) / 1_000 };
}

/** Ten times as much is to cost at most eleven times as much. */
const GROWTH_MAX = 1.1;

/** Prints what units cost where there are few and where there are many, and whether that is the same. */
export function printGrowth(what: string, few: Cost, many: Cost): void {
  const show = ({ units, cpuUs, seconds }: Cost): string =>
    `${units.toLocaleString('en')}: ${cpuUs.toFixed(0)} µs each, ${seconds.toFixed(2)} s`;
  const ratio = many.cpuUs / few.cpuUs;
  console.log(`  ${what}: ${show(few)}   ${show(many)}   ratio ${ratio.toFixed(2)} (at most ${GROWTH_MAX} wanted)`);
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

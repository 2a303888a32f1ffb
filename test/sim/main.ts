import { parseArgs } from 'node:util';
import { DAYS, simulate } from './simulation.ts';

/**
 * `npm run sim -- --seed 4711` repeats one day; `--for 10m` lives through new ones for a while, `--count 100` through so
 * many. `--kind owned` is a day on SQLite, `--kind late` one on which replies of the store are late.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    for: { type: 'string' },
    count: { type: 'string' },
    kind: { type: 'string', default: 'shared' },
  },
});
const kind = DAYS.find((each) => each === values.kind);
if (!kind) throw new Error(`--kind is one of ${DAYS.join(', ')}`);

const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 };
const [, amount = '0', unit = 's'] = /^(\d+)([smh])$/.exec(values.for ?? '0s') ?? [];
const until = Date.now() + Number(amount) * UNITS[unit]!;

let seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const last = values.count === undefined ? seed : seed + Number(values.count) - 1;
const failed: number[] = [];
do {
  const started = performance.now();
  try {
    const { runs, events, kills, effects, answers, statuses } = await simulate(seed, kind);
    const took = Math.round(performance.now() - started);
    const ends = Object.entries(statuses).map(([status, count]) => `${count} ${status}`);
    console.log(
      `${kind} seed ${seed}: ${runs} runs (${ends.join(', ')}), ${events} events, ${kills} kills, ${effects} effects, ${answers} answers, ${took} ms`,
    );
  } catch (error) {
    failed.push(seed);
    console.error(`${kind} FAILED ${(error as Error).stack}`);
  }
  seed++;
} while (seed <= last || Date.now() < until);
if (failed.length > 0) {
  console.error(`${failed.length} ${kind} days failed; repeat with --kind ${kind} --seed ${failed.join(' or ')}`);
  process.exitCode = 1;
}

import { parseArgs } from 'node:util';
import { simulate } from './simulation.ts';

/** `npm run sim -- --seed 4711` repeats one day; `--for 10m` lives through new ones for a while. */
const { values } = parseArgs({ options: { seed: { type: 'string' }, for: { type: 'string' } } });

const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 };
const [, amount = '0', unit = 's'] = /^(\d+)([smh])$/.exec(values.for ?? '0s') ?? [];
const until = Date.now() + Number(amount) * UNITS[unit]!;

let seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
do {
  const started = performance.now();
  const { runs, events, kills, effects, answers, statuses } = await simulate(seed);
  const took = Math.round(performance.now() - started);
  const ends = Object.entries(statuses).map(([status, count]) => `${count} ${status}`);
  console.log(
    `seed ${seed}: ${runs} runs (${ends.join(', ')}), ${events} events, ${kills} kills, ${effects} effects, ${answers} answers, ${took} ms`,
  );
  seed++;
} while (Date.now() < until);

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Mode } from './checkout.ts';
import { type Recording, recordHost } from './recording.ts';
import { compareRecordings, linesOf } from './report.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

/**
 * Compares the behaviour of this checkout with that of another: both are started, asked the same and their answers
 * compared. `npm run compare -- OTHER_CHECKOUT [--only NAME] [--mode plain|conformance] [--slow] [--texts]`
 */

const HERE = resolve(import.meta.dirname, '../..');
const MODES: readonly Mode[] = ['plain', 'conformance'];

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      mode: { type: 'string' },
      slow: { type: 'boolean', default: false },
      texts: { type: 'boolean', default: false },
    },
  });
  const [other] = positionals;
  if (other === undefined) throw new Error('Name the other checkout: npm run compare -- ../before');
  const scenarios = SCENARIOS.filter(({ name, isSlow }) => name.includes(values.only) && (!isSlow || values.slow));
  const modes = MODES.filter((mode) => values.mode === undefined || values.mode === mode);
  const [before, after] = await Promise.all(
    [resolve(other), HERE].map((checkout) => recordAll(checkout, modes, scenarios)),
  );
  const report = compareRecordings(before!, after!);
  for (const line of linesOf(report, { withTexts: values.texts })) console.log(line);
  return report.differences.size === 0 ? 0 : 1;
}

async function recordAll(checkout: string, modes: readonly Mode[], scenarios: readonly Scenario[]): Promise<Recording> {
  const all = new Map<string, unknown>();
  for (const mode of modes) {
    for (const [name, document] of await recordHost(checkout, mode, scenarios)) all.set(name, document);
  }
  return all;
}

process.exitCode = await main();

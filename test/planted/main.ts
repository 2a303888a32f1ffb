import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { PLANTED, type PlantedBug } from './bugs.ts';

/**
 * Plants one bug after the other in the sources and runs the test that must notice it: `npm run planted`, with
 * `-- --only WORD` or `--layer unit` for some of them, or `-- --check` to see whether all can still be planted. The sources are put back
 * after each. Run it where nothing else is at work on the sources.
 */
const ROOT = resolve(import.meta.dirname, '../..');
const TEST_MAX_MS = 5 * 60_000;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    layer: { type: 'string', default: '' },
    check: { type: 'boolean', default: false },
  },
});

function plantable({ file, text }: PlantedBug): boolean {
  return readFileSync(join(ROOT, file), 'utf8').split(text).length === 2;
}

type TestOf = Pick<PlantedBug, 'layer' | 'test' | 'only'>;

function passes({ layer, test, only }: TestOf): boolean {
  const args = ['vitest', 'run', '--bail', '1', '--project', layer, test, ...(only ? ['-t', only] : [])];
  return spawnSync('npx', args, { cwd: ROOT, stdio: 'ignore', timeout: TEST_MAX_MS }).status === 0;
}

/** Whether the test fails with the bug in place. */
function isCaught(planted: PlantedBug): boolean {
  const path = join(ROOT, planted.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    source.replace(planted.text, () => planted.bug),
  );
  try {
    return !passes(planted);
  } finally {
    writeFileSync(path, source);
  }
}

/** A test that fails anyway catches nothing. */
const sound = new Map<string, boolean>();

function isSound({ layer, test, only }: TestOf): boolean {
  const name = `${layer} ${test} ${only}`;
  if (!sound.has(name)) sound.set(name, passes({ layer, test, ...(only ? { only } : {}) }));
  return sound.get(name)!;
}

function outcomeOf(bug: PlantedBug): string {
  if (!plantable(bug)) return 'cannot be planted';
  if (values.check) return 'plantable';
  if (!isSound(bug)) return 'the test fails without it';
  return isCaught(bug) ? 'caught' : 'NOT CAUGHT';
}

const chosen = PLANTED.filter(({ name, layer }) => name.includes(values.only) && layer.includes(values.layer));
let survivors = 0;
for (const bug of chosen) {
  const outcome = outcomeOf(bug);
  if (outcome !== 'caught' && outcome !== 'plantable') survivors++;
  console.log(`| ${bug.name} | ${bug.layer} | ${bug.test} | ${outcome} |`);
}
console.log(`${chosen.length - survivors} of ${chosen.length}`);
process.exitCode = survivors === 0 ? 0 : 1;

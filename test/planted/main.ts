import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { PLANTED, type PlantedBug } from './bugs.ts';

/**
 * Plants one bug after the other in the sources and runs the test that must notice it: `npm run planted`, with
 * `-- --only WORD` for some of them, or `-- --check` to see whether all can still be planted. The sources are put back
 * after each. Run it where nothing else is at work on the sources.
 */
const ROOT = resolve(import.meta.dirname, '../..');
const TEST_MAX_MS = 5 * 60_000;

const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, check: { type: 'boolean', default: false } },
});

function plantable({ file, text }: PlantedBug): boolean {
  return readFileSync(join(ROOT, file), 'utf8').split(text).length === 2;
}

function isCaught({ file, text, bug, layer, test, only }: PlantedBug): boolean {
  const path = join(ROOT, file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    source.replace(text, () => bug),
  );
  try {
    const args = ['vitest', 'run', '--bail', '1', '--project', layer, test, ...(only ? ['-t', only] : [])];
    return spawnSync('npx', args, { cwd: ROOT, stdio: 'ignore', timeout: TEST_MAX_MS }).status !== 0;
  } finally {
    writeFileSync(path, source);
  }
}

const chosen = PLANTED.filter(({ name }) => name.includes(values.only));
let survivors = 0;
for (const bug of chosen) {
  const outcome = plantable(bug) ? (values.check || isCaught(bug) ? 'yes' : 'NO') : 'cannot be planted';
  if (outcome !== 'yes') survivors++;
  console.log(`| ${bug.name} | ${bug.layer} | ${bug.test} | ${values.check ? 'plantable: ' : 'caught: '}${outcome} |`);
}
console.log(`${chosen.length - survivors} of ${chosen.length}`);
process.exitCode = survivors === 0 ? 0 : 1;

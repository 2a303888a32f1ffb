import { readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { chanceOf } from '../support/chance.ts';
import { addTables } from '../support/host.ts';
import { type Asked, ask, expectAllEnded, expectAllKept, registerAll, tryOnce } from '../support/kill-load.ts';
import { killableHosts } from '../support/killed.ts';

/**
 * Goal: a power failure loses nothing that was acknowledged. Method: a real host under load dies between a commit and its
 * flush, and of its log only that remains which was flushed before: what it had written after that is cut off.
 */

const SEED = 90_210;
/** Flushes that each host still makes under load. */
const FLUSHES = [1, 2, 5];
const PRELOADED = fileURLToPath(new URL('../support/dying-flush.ts', import.meta.url));

const { start, newFolder } = killableHosts();

it('keeps every acknowledged run when the power fails between a commit and its flush', {
  timeout: 120_000,
}, async () => {
  const chance = chanceOf(SEED);
  const folder = newFolder();
  const [log, flushed] = [join(folder, 'capstan.db-wal'), join(folder, 'flushed')];
  const all: Asked[] = [];
  addTables(folder);
  for (const flushes of FLUSHES) {
    emptyLog(folder);
    const environment = { NODE_OPTIONS: `--import=${PRELOADED}`, FLUSHED: flushed, FLUSHES: String(flushes) };
    const host = await start({ CAPSTAN_DATA: folder, ...environment });
    await registerAll(host.as('editor'));
    host.signal('SIGUSR2');
    all.push(...(await ask([host.as('editor')], chance, () => {})));
    expect(await host.exit).toBe('SIGKILL');
    const kept = Number(readFileSync(flushed, 'utf8'));
    // Otherwise nothing was cut off, and nothing was tried.
    expect(statSync(log).size).toBeGreaterThan(kept);
    truncateSync(log, kept);
  }
  expect(all.filter(({ runId }) => runId !== undefined).length).toBeGreaterThan(0);
  const host = await start({ CAPSTAN_DATA: folder });
  for (const one of all) if (one.key !== undefined) await tryOnce(host.as('editor'), one);
  await expectAllKept(host.as('editor'), all);
  await expectAllEnded(host.as('editor'));
});

/** Copies what the log has into the database. A log that begins anew while it is filled would not end where its file does. */
function emptyLog(folder: string): void {
  using database = new DatabaseSync(join(folder, 'capstan.db'));
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

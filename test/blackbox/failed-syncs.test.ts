import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { killableHosts } from '../support/killed.ts';
import { recorder } from '../support/recorder/recorder.ts';

/**
 * Goal: a host whose disk does not take its database ends, says why, and loses nothing that it has acknowledged. Method: a
 * real host in which every flush of the database file fails gets enough to copy its log; then it is started again.
 */

const PRELOADED = fileURLToPath(new URL('../support/failing-flush.ts', import.meta.url));
/** More than the write-ahead log holds before it is copied. */
const RUNS_MAX = 100;
const TEXT = 'text of a run that is long '.repeat(20_000);

const { start, stop, newFolder } = killableHosts();

it('ends when the disk does not take its database, and goes on from new files', { timeout: 120_000 }, async () => {
  recorder.excuse(500);
  const folder = newFolder();
  const environment = { NODE_OPTIONS: `--import=${PRELOADED}`, FAILING_FILE: '/capstan.db' };
  const host = await start({ CAPSTAN_DATA: folder, ...environment });
  let hasEnded = false;
  void host.exit.then(() => {
    hasEnded = true;
  });
  const acknowledged: string[] = [];
  for (let runs = 0; runs < RUNS_MAX && !hasEnded; runs++) {
    const body = { workflowId: 'conformance-identity', inputs: { payload: { text: TEXT } } };
    const answer = await host
      .as('editor')
      .post('/v1/runs', body)
      .catch(() => undefined);
    if (answer?.status === 201) acknowledged.push(answer.body.runId);
  }
  expect(await host.exit).toBe(1);
  expect(host.output()).toContain('the database (capstan.db) could not be flushed');
  expect(acknowledged.length).toBeGreaterThan(0);
  const file = join(folder, 'capstan.db');
  const { ino } = statSync(file);
  expect(existsSync(`${file}-unsynced`)).toBe(true);

  const again = await start({ CAPSTAN_DATA: folder });
  expect(again.output()).toContain('it was put into a new file');
  expect(statSync(file).ino).not.toBe(ino);
  for (const runId of acknowledged) expect((await again.as('editor').ended(runId)).status).toBe('completed');
  await stop(again);
});

import { afterAll, describe, expect, inject, it } from 'vitest';
import { migratedDatabase } from '../support/database.ts';
import { KEYS } from '../support/host.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { Stream } from '../support/stream.ts';
import { TransactionPooler } from '../support/transaction-pooler.ts';

const { start, stop } = killableHosts();
let pooler: TransactionPooler | undefined;
afterAll(async () => pooler?.close());

describe('two hosts behind a pooler in transaction mode', () => {
  it('work as without it: what one does, the streams of the other show', { timeout: 60_000 }, async () => {
    pooler = await TransactionPooler.open(await migratedDatabase(inject('postgresUrl')));
    const environment = { DATABASE_URL: pooler.url, CAPSTAN_LEASE_MS: '2000', CAPSTAN_LOG: 'info' };
    const [one, two] = await Promise.all([start(environment), start(environment)]);
    const runs = await Promise.all(Array.from({ length: 8 }, () => one.as('editor').run('conformance-multi-node')));
    const waiting = await one.as('editor').run('conformance-cancellable', { inputs: { delayMs: 500 } });
    const stream = await Stream.open(`${two.url}/v1/runs/${waiting}/events?streamMode=debug`, KEYS.editor.key);
    await stream.until((frames) => frames.some(({ event }) => event === 'run.completed'));
    for (const runId of [...runs, waiting]) {
      expect((await two.as('editor').ended(runId)).status).toBe('completed');
      expectSoundLog(await two.as('editor').events(runId));
    }
    expect(one.output()).toContain('a pooler gives out sessions of the database');
    for (const host of [one, two]) await stop(host);
  });
});

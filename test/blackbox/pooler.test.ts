import { afterAll, describe, expect, inject, it } from 'vitest';
import { migratedDatabase } from '../support/database.ts';
import { register, workflow } from '../support/definitions.ts';
import { KEYS } from '../support/host.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { expectSoundLog, killableHosts } from '../support/killed.ts';
import { PgBouncer, pgbouncerProgram } from '../support/pgbouncer.ts';
import type { HostProcess } from '../support/process.ts';
import { Stream } from '../support/stream.ts';
import { TransactionPooler } from '../support/transaction-pooler.ts';
import { until } from '../support/until.ts';

/**
 * Goal: nothing depends on a session of the database. Method: PgBouncer in transaction mode where it is installed (on
 * the PATH, or where PGBOUNCER says), and elsewhere a proxy that gives each transaction another session.
 */

const { start, stop, kill } = killableHosts();
const program = pgbouncerProgram();
let pooler: PgBouncer | TransactionPooler | undefined;
afterAll(async () => pooler?.close());

describe('two hosts behind a pooler in transaction mode', () => {
  it('work as without it, and one goes on when the other is killed', { timeout: 60_000 }, async () => {
    const target = await migratedDatabase(inject('postgresUrl'));
    pooler = program === undefined ? await TransactionPooler.open(target) : await PgBouncer.open(program, target);
    const environment = { DATABASE_URL: pooler.url, CAPSTAN_LEASE_MS: '1000', CAPSTAN_LOG: 'info' };
    const [one, two] = await Promise.all([start(environment), start(environment)]);

    const runs = await Promise.all(Array.from({ length: 8 }, () => one.as('editor').run('conformance-multi-node')));
    const waiting = await one.as('editor').run('conformance-cancellable', { inputs: { delayMs: 500 } });
    const stream = await Stream.open(`${two.url}/v1/runs/${waiting}/events?streamMode=debug`, KEYS.editor.key);
    await stream.until((frames) => frames.some(({ event }) => event === 'run.completed'));
    runs.push(waiting, await approvedRun(one, two), await scheduledRun(one));
    await expectCompleted(two, runs);
    expect(one.output()).toContain('connection pooler detected');

    const taken = await one.as('editor').run('conformance-cancellable', { inputs: { delayMs: 1_500 } });
    await one.as('editor').until(taken, ({ status }) => status === 'running');
    await kill(one);
    await expectCompleted(two, [taken]);
    await stop(two);
    for (const host of [one, two]) expect(host.output()).not.toMatch(/"level":"(error|fatal)"/);
  });
});

/** A run that one host asks a person about, and that another one gets the answer to. */
async function approvedRun(one: HostProcess, two: HostProcess): Promise<string> {
  const workflowId = await register(one.as('owner'), workflow([approval('gate')]));
  const { runId } = await waitingRun(one.as('owner'), workflowId);
  expect((await resolve(two.as('owner'), runId, 'gate', { action: 'accept' })).status).toBe(200);
  return runId;
}

/** The run of a schedule that is due soon. */
async function scheduledRun(host: HostProcess): Promise<string> {
  const api = host.as('editor');
  const runAt = new Date(Date.now() + 200).toISOString();
  const created = await api.post('/v1/host/capstan/schedules', { workflowId: 'conformance-noop', runAt });
  expect(created.status, created.text).toBe(201);
  const { body } = await until(
    () => api.get('/v1/host/capstan/runs?workflowId=conformance-noop'),
    (answer) => answer.body.items.length > 0,
  );
  return body.items[0].runId;
}

async function expectCompleted(host: HostProcess, runs: readonly string[]): Promise<void> {
  for (const runId of runs) {
    expect((await host.as('editor').ended(runId)).status).toBe('completed');
    expectSoundLog(await host.as('editor').events(runId));
  }
}

import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { PostgresServer } from '../support/postgres-server.ts';
import { type AskedHost, ask, checkAccepted, Load, read } from '../support/retrying-load.ts';
import { baseOf, checkOut } from './checkout.ts';
import { startHostOf, type TrialHost } from './hosts.ts';

/**
 * A rolling upgrade under load: two hosts of an earlier version on one PostgreSQL are replaced by two of this one, one
 * after the other, while callers start runs, people are asked and a schedule comes due.
 * `npm run upgrade-trial -- [REF] [RUNS]`: REF is the earlier version (the last release by default), RUNS how many runs
 * are accepted in each of the five phases (150).
 */

const HERE = resolve(import.meta.dirname, '../..');
const RUNS = Number(process.argv[3] ?? 150);
const APPROVALS = 20;
/** Long enough for the schedule to come due when the version that made it is on its way out. */
const SCHEDULED_IN_MS = 15_000;

const base = baseOf(process.argv[2], HERE);
const scratch = mkdtempSync(join(tmpdir(), 'capstan-upgrade-'));
const database = new PostgresServer(
  join(tmpdir(), `capstan-upgrade-${randomBytes(8).toString('hex')}`),
  await freePort(),
);
const running = new Set<TrialHost>();
const hosts: AskedHost[] = [];

async function enter(checkout: string, name: string): Promise<TrialHost> {
  const host = await startHostOf(checkout, name, database.url);
  running.add(host);
  hosts.push(host);
  console.log(`  ${name} serves`);
  return host;
}

/** Asks a host to stop. It is still asked for a while, as by a load balancer that has not noticed. */
async function leave(host: TrialHost): Promise<void> {
  const code = await host.stop();
  hosts.splice(hosts.indexOf(host), 1);
  running.delete(host);
  console.log(`  ${host.name} ended with ${code}`);
  if (code !== 0) throw new Error(`${host.name} ended with ${code}:\n${host.output()}`);
}

interface Questions {
  readonly asked: readonly string[];
  readonly schedule: string;
}

/** What the earlier version begins and this one has to finish. */
async function begin(host: AskedHost): Promise<Questions> {
  const asked: string[] = [];
  for (let count = 0; count < APPROVALS; count++) {
    asked.push((await post<{ runId: string }>(host, '/v1/runs', { workflowId: 'conformance-approval' })).runId);
  }
  const runAt = new Date(Date.now() + SCHEDULED_IN_MS).toISOString();
  const body = { workflowId: 'conformance-noop', runAt };
  const { id } = await post<{ id: string }>(host, '/v1/host/capstan/schedules', body);
  return { asked, schedule: id };
}

async function post<T>(host: AskedHost, path: string, body: object): Promise<T> {
  const response = await ask(host, path, { method: 'POST', body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** Answers what the earlier version has asked; gives the runs that do not complete, and the runs of the schedule. */
async function finish(host: AskedHost, { asked, schedule }: Questions) {
  for (const runId of asked) {
    await post(host, `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
  }
  const statuses: string[] = [];
  for (const runId of asked) statuses.push(await endOf(host, runId));
  const scheduled = await untilSome(
    () => read(host, `/v1/host/capstan/runs?tag=schedule:${schedule}`) as Promise<{ items: { runId: string }[] }>,
  );
  return { notCompleted: statuses.filter((status) => status !== 'completed').length, scheduled };
}

const ENDED = ['completed', 'failed', 'cancelled'];

async function endOf(host: AskedHost, runId: string): Promise<string> {
  for (;;) {
    const { status } = (await read(host, `/v1/runs/${runId}`)) as { status: string };
    if (ENDED.includes(status)) return status;
    await read(host, `/v1/runs/${runId}/events/poll?timeout=1&lastSequence=1000`);
  }
}

async function untilSome(list: () => Promise<{ items: readonly unknown[] }>): Promise<number> {
  const giveUpAt = Date.now() + 2 * SCHEDULED_IN_MS;
  for (;;) {
    const { length } = (await list()).items;
    if (length > 0 || Date.now() > giveUpAt) return length;
  }
}

async function trial(): Promise<boolean> {
  console.log(`from ${base.name} to this checkout, ${RUNS} runs in each phase`);
  const earlier = await checkOut(base.commit, HERE, scratch);
  await database.initialise();
  await database.start();
  const olds = [await enter(earlier, 'old 1'), await enter(earlier, 'old 2')];
  const questions = await begin(olds[0]!);
  const load = new Load(hosts);
  load.start();
  const phase = async (what: string): Promise<void> => {
    const goal = load.accepted.length + RUNS;
    await load.until(() => load.accepted.length >= goal);
    console.log(`  ${what}: ${load.accepted.length} runs accepted`);
  };
  await phase('two of the earlier version');
  const one = await enter(HERE, 'new 1');
  await phase('two of the earlier version and one of this');
  await leave(olds[0]!);
  await phase('one of each');
  const two = await enter(HERE, 'new 2');
  await leave(olds[1]!);
  await phase('two of this version');
  await leave(one);
  await phase('one of this version');
  await load.stop();
  const kept = await checkAccepted([two], load.accepted);
  const people = await finish(two, questions);
  const { accepted, unavailable, unreachable, otherFailures } = load;
  console.log(`accepted ${accepted.length}, lost ${kept.lost}, doubled ${kept.doubled}, stuck ${kept.stuck.length}`);
  console.log(`tried again: no host ${unreachable.length}, 503 ${unavailable}; failed ${otherFailures.length}`);
  console.log(`approvals of the earlier version that did not complete ${people.notCompleted} of ${APPROVALS}`);
  console.log(`runs of its schedule ${people.scheduled}`);
  for (const problem of new Set([...kept.stuck, ...otherFailures, ...unreachable])) console.log(`  ${problem}`);
  const wrong = kept.lost + kept.doubled + kept.stuck.length + otherFailures.length + people.notCompleted;
  return wrong === 0 && people.scheduled === 1;
}

try {
  process.exitCode = (await trial()) ? 0 : 1;
} finally {
  for (const host of running) await host.kill();
  await database.remove();
  await rm(scratch, { recursive: true, force: true });
}

import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Caller } from '../../src/capabilities/request.ts';
import { COMMITMENT_TABLES, type CommitmentRow } from '../../src/capabilities/starting/commitments/records.ts';
import {
  HEARTBEAT_TABLES,
  type HeartbeatEventRow,
  type HeartbeatRow,
} from '../../src/capabilities/starting/heartbeats/records.ts';
import { type RunStarter, RunStarters } from '../../src/capabilities/starting/starter/door.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import type { HeartbeatEvaluated, HeartbeatStateChanged } from '../../src/protocol/starting/heartbeats.ts';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { perform } from '../../src/runtime/change.ts';
import { createRun } from '../../src/runtime/creation.ts';
import { factsOf } from '../../src/runtime/run-row.ts';
import type { RunRow } from '../../src/store/log.ts';
import { sql } from '../../src/store/sql.ts';
import { openInMemory } from '../../src/store/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { node, workflow } from '../support/definitions.ts';
import { registerShared } from '../support/register-shared.ts';
import { seeds } from './seeds.ts';
import type { SimHost } from './sim-host.ts';
import { Storm } from './storm.ts';
import { World } from './world.ts';

/**
 * Goal: whatever happens to hosts and store, a tick of a heartbeat happens once or not at all, a change starts one run, and a
 * commitment is kept once; once the faults stop, every tick happens and nothing that is due is left over. Method: seeds
 * decide the weather, the kills, what is seen and when something is promised.
 */

const SEEDS = seeds(2);
const STORM_MS = 40_000;
/** Long enough for leases to run out and retries to be due. */
const RECOVERY_MS = 50_000;
const CALM_MS = 12_000;
const INTERVALS_SEC = [1, 2, 3, 5];
const ticked = workflow([node('a')], [], { id: 'ticked' });
const KV = { kv: { namespace: 'n', key: 'k' } };
const CALLER: Caller = {
  subject: { tenant: 'alpha', tenantName: 'alpha', principal: 'p', issuer: 'i', lane: 'l' },
  scopes: new Set(SCOPES),
  keyId: 'key',
  isTest: false,
};

let world: World;
let store: Store;
let storm: Storm;
/** What everybody who looks sees. */
let seen: number;

beforeEach(() => {
  seen = 0;
});
afterEach(async () => {
  storm.over();
  await world.settle(store.close());
});

async function open(seed: number, hosts: number): Promise<void> {
  world = new World(seed);
  const migrations = [...CORE_TABLES, ...HEARTBEAT_TABLES, ...COMMITMENT_TABLES];
  store = await openInMemory({ clock: world.clock(), migrations });
  storm = new Storm(world, store, { observed: () => seen });
  await world.settle(start(hosts));
}

async function start(hosts: number): Promise<void> {
  for (let count = 0; count < hosts; count++) await storm.startHost();
  const { runtime } = storm.hosts[0]!;
  await registerShared(runtime, ticked);
}

const all = <R>(text: string): Promise<R[]> => world.settle(store.read<R>(sql(text)));

function made<T>(outcome: T): Exclude<T, { refused: unknown }> {
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome as Exclude<T, { refused: unknown }>;
}

it.each(SEEDS)('a tick happens once, a change starts one run, a promise is kept once: seed %i', async (seed) => {
  await open(seed, 3);
  const removed = new Map<string, number>();
  const everything = async (): Promise<void> => {
    for (const intervalSec of INTERVALS_SEC) {
      const request = { intervalSec, observe: KV, workflowId: ticked.id };
      const { runtime, heartbeats } = storm.hosts[0]!;
      made(await perform(runtime, () => heartbeats.create(CALLER, request)));
    }
  };
  await world.settle(everything());
  await storm.rage([(host) => act(host, removed)], STORM_MS, RECOVERY_MS);
  const calmFrom = world.now();
  await world.run(calmFrom + CALM_MS);

  expect(storm.kills).toBeGreaterThan(2);
  const runs = await all<RunRow>('SELECT * FROM runs ORDER BY run_id');
  expect(runs.filter(({ status }) => status !== 'completed')).toEqual([]);
  for (const row of await all<HeartbeatRow>('SELECT * FROM heartbeats')) await judgeHeartbeat(row, runs, calmFrom);
  await judgeCommitments(runs, removed);
});

/** The world changes, and people promise things, or take them back. */
async function act(host: SimHost, removed: Map<string, number>): Promise<void> {
  const { random } = world;
  const deed = random.next();
  if (deed < 0.4) {
    seen += random.between(0, 2);
    return;
  }
  const common = { memoryRef: 'mem://sim', workflowId: ticked.id };
  const predicate = { observe: KV, when: `observed.value >= ${seen + 1}`, everySec: 2 };
  const at = new Date(world.now() + random.between(0, 10_000)).toISOString();
  const request = { ...common, ...(deed < 0.7 ? { predicate } : { at }) };
  const commitment = made(await perform(host.runtime, () => host.commitments.create(CALLER, request)));
  if (!random.chance(0.2)) return;
  await world.sleep(random.between(0, 3_000));
  const outcome = await perform(host.runtime, () => host.commitments.remove(CALLER, commitment.id));
  if (!isRefusal(outcome)) removed.set(commitment.id, world.now());
}

async function judgeHeartbeat({ heartbeat_id, spec, created_at }: HeartbeatRow, runs: RunRow[], calmFrom: number) {
  const events = await all<HeartbeatEventRow>(
    `SELECT * FROM heartbeat_events WHERE heartbeat_id = '${heartbeat_id}' ORDER BY sequence`,
  );
  const intervalMs = JSON.parse(spec).intervalSec * 1_000;
  const beatOf = ({ at }: HeartbeatEventRow): number => Math.floor((at - created_at) / intervalMs);
  const ticks = events.filter(({ type }) => type === 'heartbeat.evaluated');
  const beats = ticks.map(beatOf);
  expect(beats, 'beats').toEqual([...new Set(beats)]);
  const payloads = ticks.map(({ payload }) => JSON.parse(payload) as HeartbeatEvaluated);
  expect(payloads.every(({ status }) => status === 'ok')).toBe(true);

  const changes = events
    .filter(({ type }) => type === 'heartbeat.stateChanged')
    .map(({ payload }) => JSON.parse(payload) as HeartbeatStateChanged);
  expect(changes.map(({ from }) => from)).toEqual([{}, ...changes.slice(0, -1).map(({ to }) => to)]);
  expect(payloads.filter(({ changed }) => changed)).toHaveLength(changes.length);
  const its = runs.map(factsOf).filter(({ metadata }) => metadata?.heartbeatId === heartbeat_id);
  expect(its.map(({ inputs }) => inputs.heartbeat)).toEqual(changes.map(({ from, to }) => ({ from, to })));

  const [first, last] = [calmFrom, world.now()].map((at) => Math.floor((at - created_at) / intervalMs));
  const inCalm = beats.filter((beat) => beat > first!);
  expect(inCalm, 'beats in calm weather').toEqual(
    Array.from({ length: last! - first! }, (_, index) => first! + 1 + index),
  );
}

async function judgeCommitments(runs: RunRow[], removed: ReadonlyMap<string, number>): Promise<void> {
  const rows = await all<CommitmentRow>('SELECT * FROM commitments');
  const runsOf = (id: string): RunRow[] => runs.filter((row) => factsOf(row).metadata?.commitmentId === id);
  expect(rows.filter(({ state }) => state === 'fired').length).toBeGreaterThan(3);
  for (const { commitment_id, state, spec, run_id } of rows) {
    const its = runsOf(commitment_id);
    expect(its.map((row) => row.run_id)).toEqual(run_id === null ? [] : [run_id]);
    const { at } = JSON.parse(spec) as { at?: string };
    if (at !== undefined) expect(state, `promised for ${at}`).toBe('fired');
  }
  for (const [id, at] of removed) expect(runsOf(id).filter(({ created_at }) => created_at > at)).toEqual([]);
  const told = await all<{ run_id: string }>(
    `SELECT run_id FROM events WHERE type = 'commitment.fired' ORDER BY run_id`,
  );
  const forCommitments = runs.filter((row) => factsOf(row).metadata?.commitmentId !== undefined);
  expect(told.map(({ run_id }) => run_id)).toEqual(forCommitments.map(({ run_id }) => run_id));
  const waiting = await all<{ work_id: string }>(`SELECT work_id FROM work WHERE kind = 'commitment' ORDER BY work_id`);
  const armed = rows.filter(({ state }) => state === 'armed').map(({ commitment_id }) => commitment_id);
  expect(waiting.map(({ work_id }) => work_id)).toEqual(armed.sort());
}

it('a thousand heartbeats that are due at once tick once each, on two hosts', async () => {
  await open(77, 2);
  const [host] = storm.hosts;
  const makeAll = async (): Promise<void> => {
    for (let count = 0; count < 1_000; count++) {
      const request = { intervalSec: 86_400, observe: KV, workflowId: ticked.id };
      await store.commit(made(await host!.heartbeats.create(CALLER, request)).writes);
    }
  };
  await world.settle(makeAll());
  await world.run(world.now() + 30_000);
  const ticks = await all(`SELECT heartbeat_id FROM heartbeat_events WHERE type = 'heartbeat.evaluated'`);
  expect(ticks).toHaveLength(1_000);
  const runs = await all<RunRow>('SELECT * FROM runs');
  expect(new Set(runs.map((row) => factsOf(row).metadata?.heartbeatId)).size).toBe(1_000);
  expect(runs).toHaveLength(1_000);
});

it('what belongs to something is seen and started by it, changed by it alone, and gone with it', async () => {
  await open(4711, 1);
  const { runtime, heartbeats, commitments, executor, contributed } = storm.hosts[0]!;
  let progress = 0;
  let isBusy = true;
  const start: RunStarter['start'] = async ({ ownerId, change }) => {
    if (change && isBusy) return { refused: 'conflict', message: 'Not now.' };
    const workflow = (await runtime.plans.current(CALLER.subject, ticked.id))!;
    const rest = { subject: CALLER.subject, inputs: {}, configurable: {}, depth: 0 };
    return { created: createRun(runtime, { ...rest, workflow, metadata: { ownerId } }) };
  };
  contributed.push(RunStarters.of({ ownerKind: 'goal', start, observe: async () => ({ progress }) }));
  const owner = { kind: 'goal', id: 'goal-seven' };
  const beat = made(await world.settle(heartbeats.create(CALLER, { intervalSec: 1 }, owner)));
  const at = new Date(world.now() + 2_000).toISOString();
  const request = { memoryRef: 'goal:goal-seven', workflowId: ticked.id, at };
  const promise = made(await world.settle(commitments.create(CALLER, request, owner)));
  await world.settle(store.commit([...beat.writes, ...promise.writes]));
  await world.run(world.now() + 1_500);
  // What could not be started is no change yet: it is seen again.
  expect(made(await world.settle(heartbeats.find(CALLER, beat.result.id)))).toMatchObject({ lastError: 'Not now.' });
  isBusy = false;
  await world.run(world.now() + 2_000);
  progress = 1;
  await world.run(world.now() + 3_000);

  const runs = await all<RunRow>('SELECT * FROM runs');
  expect(runs.map((row) => factsOf(row).metadata)).toEqual([0, 1, 2].map(() => ({ ownerId: 'goal-seven' })));
  const refused = { refused: 'conflict', details: { belongsTo: 'goal:goal-seven' } };
  expect(await world.settle(heartbeats.remove(CALLER, beat.result.id))).toMatchObject(refused);
  expect(await world.settle(commitments.remove(CALLER, promise.result.id))).toMatchObject(refused);
  await world.settle(
    store.commit([
      ...heartbeats.removeOwned(CALLER.subject, beat.result.id).writes,
      ...commitments.removeOwned(CALLER.subject, promise.result.id).writes,
    ]),
  );
  await world.run(world.now() + 5_000);
  for (const table of ['heartbeats', 'heartbeat_events', 'commitments', 'work']) {
    expect(await all(`SELECT * FROM ${table}`), table).toEqual([]);
  }
  expect(executor.inHand).toBe(0);
});

it('one that is lent starts the runs of something else until it is taken back', async () => {
  await open(12, 1);
  const { runtime, heartbeats, contributed } = storm.hosts[0]!;
  const create = () => heartbeats.create(CALLER, { intervalSec: 1, observe: KV });
  const own = made(await world.settle(perform(runtime, create)));
  await world.run(world.now() + 1_500);
  const asked: unknown[] = [];
  const start: RunStarter['start'] = async ({ change }) => {
    asked.push(change);
    return { refused: 'conflict', message: 'Only asked.' };
  };
  contributed.push(RunStarters.of({ ownerKind: 'goal', start, observe: async () => null }));
  const lent = made(await world.settle(heartbeats.lend(CALLER, own.id, { kind: 'goal', id: 'g' })));
  await world.settle(store.commit(lent.writes));
  await world.run(world.now() + 1_500);
  expect(asked[0]).toEqual({ from: {}, to: { found: true, value: 0 } });
  expect(isRefusal(await world.settle(heartbeats.lend(CALLER, own.id, { kind: 'goal', id: 'h' })))).toBe(true);
  await world.settle(store.commit(heartbeats.takeBack(CALLER.subject, own.id).writes));
  const count = asked.length;
  await world.run(world.now() + 5_000);
  expect(asked).toHaveLength(count);
  const after = made(await world.settle(heartbeats.find(CALLER, own.id)));
  expect([after.belongsTo, after.nextTickAt]).toEqual([undefined, undefined]);
});

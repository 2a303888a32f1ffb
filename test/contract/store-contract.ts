import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  findWorkflow,
  HOST_OWNER,
  insertDefinition,
  listWorkflows,
  removeWorkflow,
  setCurrentVersion,
} from '../../src/store/definitions.ts';
import { claimEffect, findEffect, settleEffect } from '../../src/store/effects.ts';
import { deleteOtherHosts, keepAlive } from '../../src/store/hosts.ts';
import {
  deleteExpiredIdempotencyRecords,
  findIdempotencyRecord,
  saveIdempotencyRecord,
} from '../../src/store/idempotency.ts';
import {
  acquireScope,
  advanceRun,
  childRuns,
  findRun,
  forksAmong,
  insertEvents,
  insertFork,
  insertRun,
  insertTags,
  type RunRow,
  readEvents,
  releaseScope,
  type StoredEvent,
} from '../../src/store/log.ts';
import {
  addOrWake,
  addOrWakeEach,
  addWork,
  claimDue,
  countQuarantined,
  type DueTenant,
  dueTenants,
  endQuarantine,
  ensureWork,
  finishUnlessWoken,
  finishWork,
  freeOrphans,
  guardLease,
  type Lease,
  nextDue,
  ownedWork,
  readWorkItem,
  releaseLease,
  saveCheckpoint,
  type WorkItem,
  wake,
  wakeEach,
} from '../../src/store/queue.ts';
import { FORKED_RUNS, listRuns } from '../../src/store/run-lists.ts';
import { sql, type Unit, type Write } from '../../src/store/sql.ts';
import type { Migration, Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import type { Clock } from '../../src/system/clock.ts';
import { ManualClock } from '../support/manual-clock.ts';

export interface OpenedStore {
  readonly store: Store;
  /** Opens the same data again, as another host would. */
  readonly another?: () => Promise<Store>;
  cleanUp(): Promise<void>;
}

export type OpenStore = (clock: Clock, migrations: readonly Migration[]) => Promise<OpenedStore>;

/** What it takes to be a store. Every implementation is held to all of it. */
export function storeContract(name: string, open: OpenStore): void {
  describe(`${name} as a store`, () => {
    let clock: ManualClock;
    let opened: OpenedStore;
    let store: Store;
    const extraStores: Store[] = [];

    beforeEach(async () => {
      clock = new ManualClock();
      opened = await open(clock, CORE_TABLES);
      store = opened.store;
    });

    afterEach(async () => {
      for (const extra of extraStores.splice(0)) await extra.close();
      await store.close();
      await opened.cleanUp();
    });

    /** A second way in: another host's where the store has hosts, else the same. */
    const anotherStore = async (): Promise<Store> => {
      const another = await opened.another?.();
      if (another) extraStores.push(another);
      return another ?? store;
    };
    const commit = async (unit: Unit): Promise<string> => {
      const outcome = await store.commit(unit);
      return outcome.committed ? 'committed' : outcome.failedExpectation;
    };
    const count = async (table: string): Promise<number> => {
      const [row] = await store.read<{ count: number }>(sql(`SELECT COUNT(*) AS count FROM ${table}`));
      return Number(row!.count);
    };

    it('takes nothing and shows nothing once it is closed', async () => {
      await store.close();
      await expect(store.read(sql('SELECT COUNT(*) AS count FROM runs'))).rejects.toThrow();
      await expect(store.commit([insertRun(run('run-1'))])).rejects.toThrow();
      await expect(store.commit([insertRun(run('run-1'))], { isUrgent: true })).rejects.toThrow();
    });

    describe('a unit', () => {
      it('happens whole', async () => {
        expect(await commit([insertRun(run('run-1')), ...insertEvents('run-1', [event(0)])])).toBe('committed');
        expect([await count('runs'), await count('events')]).toEqual([1, 1]);
      });

      it('leaves nothing behind when one of its expectations does not hold', async () => {
        const broken = advanceRun({ ...move('run-none'), from: 7, to: 8 });
        expect(await commit([insertRun(run('run-1')), ...insertEvents('run-1', [event(0)]), broken])).toBe('sequence');
        expect([await count('runs'), await count('events')]).toEqual([0, 0]);
      });

      it('leaves nothing behind when a statement fails, and says so', async () => {
        const failing = { sql: 'INSERT INTO nowhere (x) VALUES ($1)', params: [1] };
        await expect(store.commit([insertRun(run('run-1')), failing])).rejects.toThrow();
        expect(await count('runs')).toBe(0);
      });

      it('does not suffer from others in its group that are refused or fail', async () => {
        const units: Unit[] = Array.from({ length: 30 }, (_, index) => [insertRun(run(`run-${index}`))]);
        units[7] = [insertRun(run('run-7')), advanceRun({ ...move('run-none'), from: 1, to: 2 })];
        units[13] = [insertRun(run('run-13')), { sql: 'INSERT INTO nowhere (x) VALUES (1)', params: [] }];
        const outcomes = await Promise.allSettled(units.map((unit) => store.commit(unit)));
        expect(outcomes[13]!.status).toBe('rejected');
        expect(outcomes[7]).toMatchObject({ value: { committed: false, failedExpectation: 'sequence' } });
        expect(await count('runs')).toBe(28);
      });

      it('does not suffer from another in its group that inserts a row which exists', async () => {
        await commit([insertRun(run('run-1'))]);
        const units: Unit[] = ['run-0', 'run-1', 'run-2'].map((id) => [
          insertRun(run(id)),
          ...insertEvents(id, [event(0)]),
        ]);
        const outcomes = await Promise.allSettled(units.map((unit) => store.commit(unit)));
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
        expect([await count('runs'), await count('events')]).toEqual([3, 2]);
      });

      it('gives back the rows that it asked for', async () => {
        await commit([addWork({ workId: 'w', kind: 'k', tenant: 't', dueAt: 0 })]);
        const outcome = await store.commit([claimDue('host-a', 5)]);
        expect(outcome).toMatchObject({ committed: true, rows: [[{ work_id: 'w', epoch: 2 }]] });
      });

      it('knows the number of its transaction, which is over for every reader when all before it are', async () => {
        const another = await anotherStore();
        const note = (hostId: string): Write => ({
          sql: 'INSERT INTO hosts (host_id, alive_until) VALUES ($1, $transaction)',
          params: [hostId],
        });
        for (const [index, writer] of [store, another, store].entries()) await writer.commit([note(`host-${index}`)]);
        const settled = async (reader: Store): Promise<string[]> => {
          const rows = await reader.read<{ host_id: string }>(
            sql('SELECT host_id FROM hosts WHERE alive_until < $settled ORDER BY alive_until, host_id'),
          );
          return rows.map(({ host_id }) => host_id);
        };
        // On a server, the transactions of others count too, and they take their time.
        for (const reader of [store, another]) {
          await expect.poll(() => settled(reader), { timeout: 20_000 }).toEqual(['host-0', 'host-1', 'host-2']);
        }
      });
    });

    describe('the log', () => {
      it('takes one of two appends at the same sequence and tells the other', async () => {
        await commit([insertRun(run('run-1'))]);
        const append = (type: string): Unit => [
          advanceRun({ ...move('run-1'), from: 0, to: 1 }),
          ...insertEvents('run-1', [{ ...event(1), type }]),
        ];
        const other = await anotherStore();
        const outcomes = await Promise.all([store.commit(append('a')), other.commit(append('b'))]);
        expect(outcomes.filter(({ committed }) => committed)).toHaveLength(1);
        expect(outcomes.find(({ committed }) => !committed)).toMatchObject({ failedExpectation: 'sequence' });
        expect(await count('events')).toBe(1);
      });

      it('has no gaps and no doubles however many write at once', async () => {
        await commit([insertRun(run('run-1'))]);
        const other = await anotherStore();
        const appendSome = async (through: Store): Promise<void> => {
          for (let done = 0; done < 10; ) {
            const [row] = await through.read<RunRow>(findRun({ tenant: 'alpha' }, 'run-1'));
            const from = row!.sequence;
            const unit = [
              advanceRun({ ...move('run-1'), from, to: from + 1 }),
              ...insertEvents('run-1', [event(from + 1)]),
            ];
            if ((await through.commit(unit)).committed) done++;
          }
        };
        await Promise.all([appendSome(store), appendSome(other), appendSome(store), appendSome(other)]);
        const events = await store.read<StoredEvent>(readEvents({ tenant: 'alpha', runId: 'run-1' }, -1, 100));
        expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
      });

      it('gives events back byte for byte, in order, page by page', async () => {
        const bodies = ['{"a":"\\u0000"}', '{"b":"é 漢 🛰️ \\ud800"}', `{"c":"${'x'.repeat(100_000)}"}`];
        const events = bodies.map((body, sequence) => ({ ...event(sequence), body }));
        await commit([insertRun(run('run-1')), ...insertEvents('run-1', events)]);
        const ref = { tenant: 'alpha', runId: 'run-1' };
        const first = await store.read<StoredEvent>(readEvents(ref, -1, 2));
        const rest = await store.read<StoredEvent>(readEvents(ref, 1, 2));
        expect([...first, ...rest].map(({ body }) => body)).toEqual(bodies);
      });

      it('takes hundreds of events in one append', async () => {
        const events = Array.from({ length: 300 }, (_, sequence) => event(sequence));
        await commit([insertRun(run('run-1')), ...insertEvents('run-1', events)]);
        const read = await store.read<StoredEvent>(readEvents({ tenant: 'alpha', runId: 'run-1' }, -1, 1_000));
        expect(read.map(({ sequence }) => sequence)).toEqual(events.map(({ sequence }) => sequence));
      });

      it('shows a run, its events and its children to its own tenant and workspace only', async () => {
        await commit([
          insertRun({ ...run('run-1'), workspace: 'north' }),
          ...insertEvents('run-1', [event(0)]),
          insertRun({ ...run('run-2'), parent_run_id: 'run-1' }),
        ]);
        const seen = async (tenant: string, workspace?: string) =>
          (await store.read(findRun({ tenant, workspace }, 'run-1'))).length;
        expect([await seen('alpha'), await seen('alpha', 'north')]).toEqual([1, 1]);
        expect([await seen('beta'), await seen('alpha', 'south'), await seen('beta', 'north')]).toEqual([0, 0, 0]);
        expect(await store.read(readEvents({ tenant: 'beta', runId: 'run-1' }, -1, 10))).toEqual([]);
        expect(await store.read(childRuns({ tenant: 'beta', runId: 'run-1' }))).toEqual([]);
        expect(await store.read(childRuns({ tenant: 'alpha', runId: 'run-1' }))).toHaveLength(1);
      });

      it('lists runs newest first, by status, workflow, tag and time, a page at a time', async () => {
        const rows = [
          { ...run('run-a'), status: 'completed' },
          { ...run('run-b'), workflow_id: 'other' },
          { ...run('run-c'), status: 'completed', parent_run_id: 'run-a', parent_node_id: 'do' },
          { ...run('run-d'), tenant: 'beta' },
          { ...run('run-0'), status: 'failed', ended_at: 1 },
          { ...run('run-1'), status: 'failed', ended_at: 1, workflow_id: 'other' },
        ];
        await commit(rows.map(insertRun));
        await commit([...insertTags({ tenant: 'alpha', runId: 'run-b' }, ['odd \u0000 tag', 'x', 'x'])]);
        const ids = async (filter: Parameters<typeof listRuns>[1], limit = 10) =>
          (await store.read<RunRow>(listRuns({ tenant: 'alpha' }, filter, limit))).map(({ run_id }) => run_id);
        expect(await ids({})).toEqual(['run-c', 'run-b', 'run-a', 'run-1', 'run-0']);
        expect(await ids({}, 2)).toEqual(['run-c', 'run-b']);
        expect(await ids({ beforeId: 'run-b' })).toEqual(['run-a', 'run-1', 'run-0']);
        expect(await ids({ fromId: 'run-b' })).toEqual(['run-c', 'run-b']);
        expect(await ids({ status: 'completed' })).toEqual(['run-c', 'run-a']);
        expect(await ids({ status: 'failed' })).toEqual(['run-1', 'run-0']);
        expect(await ids({ status: 'running' })).toEqual(['run-b']);
        expect(await ids({ workflowId: 'other' })).toEqual(['run-b', 'run-1']);
        expect(await ids({ workflowId: 'other', status: 'failed' })).toEqual(['run-1']);
        expect(await ids({ workflowId: 'other', status: 'running' })).toEqual(['run-b']);
        expect(await ids({ tag: 'odd \u0000 tag' })).toEqual(['run-b']);
        expect(await ids({ tag: 'y' })).toEqual([]);
        const team = (runId: string, tenant = 'alpha') => insertTags({ tenant, runId }, ['team']);
        await commit([
          ...team('run-a'),
          ...team('run-b'),
          ...team('run-c'),
          ...team('run-1'),
          ...team('run-d', 'beta'),
        ]);
        expect(await ids({ tag: 'team' })).toEqual(['run-c', 'run-b', 'run-a', 'run-1']);
        expect(await ids({ tag: 'team' }, 2)).toEqual(['run-c', 'run-b']);
        expect(await ids({ tag: 'team', beforeId: 'run-b' })).toEqual(['run-a', 'run-1']);
        expect(await ids({ tag: 'team', fromId: 'run-a', isChild: false })).toEqual(['run-b', 'run-a']);
        expect(await ids({ tag: 'team', status: 'failed' })).toEqual(['run-1']);
        expect(await ids({ tag: 'team', workflowId: 'other', beforeId: 'run-b' })).toEqual(['run-1']);
        const fork = { run_id: 'run-b', source_run_id: 'run-a', mode: 'branch', is_preview: 1 };
        await commit([insertFork('alpha', fork)]);
        expect(await store.read(forksAmong('alpha', ['run-a', 'run-b']))).toEqual([fork]);
        expect(await store.read(forksAmong('beta', ['run-b']))).toEqual([]);
        const amongForks = (isWanted: boolean) => [{ select: FORKED_RUNS, isWanted }];
        expect(await ids({ isChild: true })).toEqual(['run-c']);
        expect(await ids({ among: amongForks(true) })).toEqual(['run-b']);
        expect(await ids({ isChild: false, among: amongForks(false) })).toEqual(['run-a', 'run-1', 'run-0']);
      });

      it('lets one live run have a scope', async () => {
        const other = await anotherStore();
        const outcomes = await Promise.all([
          store.commit(acquireScope('s', 'run-1', true)),
          other.commit(acquireScope('s', 'run-2', true)),
        ]);
        expect(outcomes.filter(({ committed }) => committed)).toHaveLength(1);
        const holder = outcomes[0]!.committed ? 'run-1' : 'run-2';
        expect(await commit(releaseScope('s', holder))).toBe('committed');
        expect(await commit(acquireScope('s', 'run-3', true))).toBe('committed');
      });
    });

    describe('the queue', () => {
      const due = (workId: string, dueAt: number | null = 0) => addWork({ workId, kind: 'k', tenant: 'alpha', dueAt });
      const claimed = async (through: Store, owner: string, limit = 10, except: string[] = []): Promise<WorkItem[]> => {
        const outcome = await through.commit([claimDue(owner, limit, { except })]);
        return outcome.committed ? ([...outcome.rows[0]!] as unknown as WorkItem[]) : [];
      };
      const leaseOf = (item: WorkItem, owner: string): Lease => ({ workId: item.work_id, owner, epoch: item.epoch });
      const orphansFor = async (owner: string): Promise<WorkItem[]> => {
        await commit([freeOrphans(10, { kind: 'run', strikesMax: 2 })]);
        return claimed(store, owner);
      };

      it('gives each item to one host, however many ask', async () => {
        await commit(Array.from({ length: 40 }, (_, index) => due(`w${index}`)));
        const other = await anotherStore();
        const batches = await Promise.all([
          claimed(store, 'host-a', 25),
          claimed(other, 'host-b', 25),
          claimed(store, 'host-a', 25),
          claimed(other, 'host-b', 25),
        ]);
        const ids = batches.flat().map(({ work_id }) => work_id);
        expect(new Set(ids).size).toBe(ids.length);
        const rest = [...(await claimed(store, 'host-a', 50))].map(({ work_id }) => work_id);
        expect(new Set([...ids, ...rest]).size).toBe(40);
      });

      it('gives out what is due, earliest first, and nothing before its time', async () => {
        await commit([
          due('later', clock.now() + 5_000),
          due('b', clock.now() - 1),
          due('a', clock.now() - 2),
          due('never', null),
        ]);
        expect((await claimed(store, 'host-a', 1)).map(({ work_id }) => work_id)).toEqual(['a']);
        expect((await claimed(store, 'host-a')).map(({ work_id }) => work_id)).toEqual(['b']);
        expect(await store.read(nextDue([]))).toEqual([{ due_at: clock.now() + 5_000, suspect_at: null }]);
        clock.advance(5_000);
        expect((await claimed(store, 'host-a')).map(({ work_id }) => work_id)).toEqual(['later']);
      });

      it('passes over kinds of which there is enough in hand', async () => {
        const slow = addWork({ workId: 'slow', kind: 'slow', tenant: 'alpha', dueAt: 0 });
        await commit([slow, due('w', clock.now() + 5_000)]);
        expect(await claimed(store, 'host-a', 10, ['slow', 'other'])).toEqual([]);
        expect(await store.read(nextDue(['slow', 'other']))).toEqual([
          { due_at: clock.now() + 5_000, suspect_at: null },
        ]);
        expect((await claimed(store, 'host-a')).map(({ work_id }) => work_id)).toEqual(['slow']);
      });

      it('keeps work from others while its host is alive, and hands it over when it is not', async () => {
        await commit([due('w'), keepAlive('host-a', 1_000), keepAlive('host-b', 60_000)]);
        await claimed(store, 'host-a');
        expect(await orphansFor('host-b')).toEqual([]);
        clock.advance(900);
        await commit([keepAlive('host-a', 1_000)]);
        clock.advance(900);
        expect(await orphansFor('host-b')).toEqual([]);
        clock.advance(200);
        expect(await orphansFor('host-b')).toMatchObject([{ work_id: 'w', crashes: 1 }]);
      });

      it('lets a sole owner take over at once what its predecessor held', async () => {
        await commit([due('w'), keepAlive('host-a', 1_000_000)]);
        await claimed(store, 'host-a');
        await commit([keepAlive('host-b', 1_000_000), deleteOtherHosts('host-b')]);
        expect(await orphansFor('host-b')).toMatchObject([{ work_id: 'w' }]);
      });

      it('refuses every write of a host whose lease was taken over', async () => {
        await commit([due('w'), insertRun(run('run-1'))]);
        const [item] = await claimed(store, 'host-a');
        const old = leaseOf(item!, 'host-a');
        const [taken] = await orphansFor('host-b');
        const append = advanceRun({ ...move('run-1'), from: 0, to: 1 });
        expect(await commit([guardLease(old, true), append])).toBe('lease');
        expect(await commit([releaseLease(old, 0, 0), append])).toBe('lease');
        expect(await commit([finishWork(old), append])).toBe('lease');
        expect(await commit([guardLease(leaseOf(taken!, 'host-b'), true), append])).toBe('committed');
      });

      it('refuses an earlier lease of the same host, too: it may have lost the item and claimed it again', async () => {
        await commit([due('w'), insertRun(run('run-1'))]);
        const [item] = await claimed(store, 'host-a');
        const old = leaseOf(item!, 'host-a');
        const [again] = await orphansFor('host-a');
        const append = advanceRun({ ...move('run-1'), from: 0, to: 1 });
        for (const write of [guardLease(old, true), releaseLease(old, 0, 0), finishWork(old)]) {
          expect(await commit([write, append])).toBe('lease');
        }
        expect(await commit([guardLease(leaseOf(again!, 'host-a'), true), append])).toBe('committed');
      });

      it('counts crashes in a row until there is progress', async () => {
        await commit([due('w')]);
        await claimed(store, 'host-a');
        await orphansFor('host-b');
        const [third] = await orphansFor('host-c');
        expect(third).toMatchObject({ crashes: 2 });
        await commit([guardLease(leaseOf(third!, 'host-c'), false)]);
        expect(await orphansFor('host-d')).toMatchObject([{ crashes: 3 }]);
        const [fourth] = await orphansFor('host-d');
        await commit([guardLease(leaseOf(fourth!, 'host-d'), true)]);
        expect(await orphansFor('host-e')).toMatchObject([{ crashes: 1 }]);
      });

      it('passes over tenants, one row for each, and says which of them have something due', async () => {
        const of = (tenant: string, workId: string, dueAt: number) => addWork({ workId, kind: 'k', tenant, dueAt });
        const many = Array.from({ length: 50 }, (_, index) => of('alpha', `a${index}`, 0));
        await commit([...many, of('beta', 'b', 1), of('gamma', 'c', clock.now() + 5_000), of('delta', 'd', 0)]);
        const tenants = async (after: string, limit: number, except: string[] = []) =>
          (await store.read<DueTenant>(dueTenants(after, limit, except))).map(({ tenant, is_due }) => [tenant, is_due]);
        expect(await tenants('', 10)).toEqual([
          ['alpha', 1],
          ['beta', 1],
          ['delta', 1],
          ['gamma', 0],
        ]);
        expect(await tenants('alpha', 2)).toEqual([
          ['beta', 1],
          ['delta', 1],
        ]);
        expect(await tenants('gamma', 2)).toEqual([]);
        expect(await tenants('delta', 2, ['k'])).toEqual([['gamma', 0]]);
        const outcome = await store.commit([
          claimDue('host-a', 2, { tenant: 'alpha' }),
          claimDue('host-a', 2, { tenant: 'beta', except: ['other'] }),
        ]);
        expect(outcome).toMatchObject({ rows: [{ length: 2 }, [{ work_id: 'b', tenant: 'beta' }]] });
      });

      it('quarantines a run with the second host that dies while it holds it alone', async () => {
        const runItem = (workId: string) => addWork({ workId, kind: 'run', tenant: 'alpha', dueAt: 0 });
        const free = () => commit([freeOrphans(10, { kind: 'run', strikesMax: 2 })]);
        const suspects = async (owner: string): Promise<WorkItem[]> => {
          const outcome = await store.commit([claimDue(owner, 1, { isSuspect: true })]);
          return outcome.committed ? (outcome.rows[0] as unknown as WorkItem[]) : [];
        };
        await commit([runItem('a'), runItem('b'), due('w')]);
        expect(await claimed(store, 'host-a')).toHaveLength(3);
        await free();
        // What is not a run is due again like anything else.
        expect(await claimed(store, 'host-b')).toMatchObject([{ work_id: 'w', crashes: 1, strikes: 0 }]);
        const [first] = await suspects('host-b');
        expect(first).toMatchObject({ crashes: 1, strikes: 1 });
        await free();
        // Another was not alone yet, so it is tried first.
        const [second] = await suspects('host-c');
        expect(second!.work_id).not.toBe(first!.work_id);
        expect(await suspects('host-d')).toMatchObject([{ work_id: first!.work_id, strikes: 2 }]);
        await commit([keepAlive('host-c', 60_000)]);
        await free();
        expect(await store.read(countQuarantined())).toEqual([{ count: 1 }]);
        // A wake-up does not bring it back, a person does.
        await commit([wake(first!.work_id)]);
        expect(await suspects('host-c')).toEqual([]);
        await commit([endQuarantine(first!.work_id)]);
        expect(await suspects('host-d')).toMatchObject([{ work_id: first!.work_id, strikes: 3 }]);
        // One that makes progress is a suspect no more.
        await commit([guardLease(leaseOf(second!, 'host-c'), true)]);
        await free();
        expect(await store.read(countQuarantined())).toEqual([{ count: 1 }]);
      });

      it('does not let a wake-up get lost between looking and letting go', async () => {
        await commit([due('w')]);
        const [item] = await claimed(store, 'host-a');
        const lease = leaseOf(item!, 'host-a');
        await commit([wake('w')]);
        expect(await commit([releaseLease(lease, null, item!.wakes)])).toBe('lease');
        expect(await store.read(ownedWork('host-a'))).toMatchObject([{ work_id: 'w', due_at: clock.now() }]);
        const [now] = await store.read<{ wakes: number }>(readWorkItem('w'));
        expect(await commit([releaseLease(lease, null, now!.wakes)])).toBe('committed');
        expect(await claimed(store, 'host-b')).toEqual([]);
        await commit([wake('w')]);
        expect(await claimed(store, 'host-b')).toHaveLength(1);
      });

      it('does not let work come to its end that was woken meanwhile', async () => {
        await commit([due('w')]);
        const [item] = await claimed(store, 'host-a');
        const lease = leaseOf(item!, 'host-a');
        await commit([wake('w')]);
        expect(await commit([finishUnlessWoken(lease, item!.wakes)])).toBe('lease');
        expect(await commit([finishUnlessWoken(lease, item!.wakes + 1)])).toBe('committed');
        expect(await count('work')).toBe(0);
      });

      it('hands over how far work has come, and lets only its holder say so', async () => {
        await commit([due('w')]);
        const [item] = await claimed(store, 'host-a');
        const old = leaseOf(item!, 'host-a');
        expect(await commit([saveCheckpoint(old, 'half')])).toBe('committed');
        expect(await orphansFor('host-b')).toMatchObject([{ payload: 'half' }]);
        expect(await commit([saveCheckpoint(old, 'all')])).toBe('lease');
      });

      it('has one of what there should be one of', async () => {
        const other = await anotherStore();
        const work = ensureWork({ workId: 'only', kind: 'k', tenant: '*', dueAt: 0 });
        await Promise.all([store.commit([work]), other.commit([work]), store.commit([work])]);
        expect(await count('work')).toBe(1);
      });

      it('adds an item, or makes it due and wakes it if it exists', async () => {
        const later = clock.now() + 1_000;
        await commit([addOrWake({ workId: 'w', kind: 'k', tenant: 't', dueAt: later })]);
        expect(await claimed(store, 'host-a')).toEqual([]);
        await commit([addOrWake({ workId: 'w', kind: 'k', tenant: 't' })]);
        expect(await claimed(store, 'host-a')).toMatchObject([
          { work_id: 'w', kind: 'k', tenant: 't', payload: '', wakes: 1 },
        ]);
      });

      it('adds items for rows of a table, and wakes those that exist, with or without making them due', async () => {
        const later = clock.now() + 1_000;
        await commit([insertRun(run('run-a')), insertRun(run('run-b'))]);
        await commit([addWork({ workId: 'of-run-a', kind: 'k', tenant: 't', dueAt: later })]);
        const source = { workId: "'of-' || run_id", from: 'runs WHERE run_id > $1', params: ['run-'] };
        const work = { kind: 'k', tenant: 't', payload: 'new' };
        await commit([addOrWakeEach(source, { ...work, dueAt: 0, keepsDueTime: true })]);
        expect(await claimed(store, 'host-a')).toMatchObject([{ work_id: 'of-run-b', payload: 'new', wakes: 0 }]);
        await commit([
          addOrWakeEach({ ...source, params: ['run-a'] }, work),
          wakeEach({ ...source, params: ['run-'] }),
        ]);
        expect(await claimed(store, 'host-a')).toMatchObject([{ work_id: 'of-run-a', payload: '', wakes: 2 }]);
        expect(await store.read(readWorkItem('of-run-b'))).toMatchObject([{ wakes: 2 }]);
      });
    });

    describe('idempotency records', () => {
      const answer = (digest: string) => ({ record_key: 'k', digest, status: 201, body: digest });

      it('keep the first answer and refuse the whole unit of whoever comes second', async () => {
        const other = await anotherStore();
        const outcomes = await Promise.all([
          store.commit([saveIdempotencyRecord(answer('a'), 1_000), insertRun(run('run-a'))]),
          other.commit([saveIdempotencyRecord(answer('b'), 1_000), insertRun(run('run-b'))]),
        ]);
        expect(outcomes.filter(({ committed }) => committed)).toHaveLength(1);
        expect(outcomes.find(({ committed }) => !committed)).toMatchObject({ failedExpectation: 'idempotency' });
        expect(await count('runs')).toBe(1);
      });

      it('end with their time', async () => {
        await commit([saveIdempotencyRecord(answer('a'), 1_000)]);
        expect(await store.read(findIdempotencyRecord('k'))).toMatchObject([{ digest: 'a' }]);
        clock.advance(1_001);
        expect(await store.read(findIdempotencyRecord('k'))).toEqual([]);
        expect(await commit([saveIdempotencyRecord(answer('b'), 1_000)])).toBe('committed');
        expect(await store.read(findIdempotencyRecord('k'))).toMatchObject([{ digest: 'b' }]);
        clock.advance(1_001);
        await commit([deleteExpiredIdempotencyRecords(10)]);
        expect(await count('idempotency')).toBe(0);
      });
    });

    describe('the effect ledger', () => {
      const claim = claimEffect({
        effectId: 'e',
        tenant: 'alpha',
        runId: 'run-1',
        nodeId: 'n',
        ordinal: 0,
        providerKey: 'http',
        retentionMs: 1_000,
      });

      it('counts attempts while there is no outcome, and refuses them once there is', async () => {
        expect([await commit([claim]), await commit([claim])]).toEqual(['committed', 'committed']);
        expect(await store.read(findEffect('alpha', 'e'))).toMatchObject([{ state: 'claimed', attempts: 2 }]);
        expect(await commit([settleEffect('alpha', 'e', 'done', '{"ok":true}')])).toBe('committed');
        expect(await commit([claim])).toBe('effect');
        expect(await commit([settleEffect('alpha', 'e', 'failed', '{}')])).toBe('effect');
        expect(await store.read(findEffect('alpha', 'e'))).toMatchObject([{ state: 'done', outcome: '{"ok":true}' }]);
        expect(await store.read(findEffect('beta', 'e'))).toEqual([]);
      });
    });

    describe('definitions', () => {
      const version = (owner: string, number: number, workflowId = 'w'): Unit => [
        insertDefinition({
          owner,
          workflow_id: workflowId,
          version: number,
          digest: `${number}`,
          body: `"${owner}${number}"`,
          created_at: 0,
        }),
        setCurrentVersion(owner, workflowId, number, 0, number === 1 ? null : number - 1),
      ];

      it("prefer a tenant's own over the host's, and another tenant's never", async () => {
        await commit([...version(HOST_OWNER, 1), ...version('alpha', 1), ...version('beta', 1, 'secret')]);
        expect(await store.read(findWorkflow({ tenant: 'alpha' }, 'w'))).toMatchObject([{ body: '"alpha1"' }]);
        expect(await store.read(findWorkflow({ tenant: 'beta' }, 'w'))).toMatchObject([{ body: '"*1"' }]);
        expect(await store.read(findWorkflow({ tenant: 'alpha' }, 'secret'))).toEqual([]);
        expect(
          await store.read(listWorkflows({ tenant: 'alpha' }, { updatedAt: 1, workflowId: '' }, 10)),
        ).toMatchObject([{ body: '"alpha1"' }]);
        expect(await store.read(listWorkflows({ tenant: 'beta' }, { updatedAt: 1, workflowId: '' }, 10))).toMatchObject(
          [{ workflow_id: 'secret' }, { body: '"*1"' }],
        );
      });

      it('refuse a version number twice', async () => {
        await commit(version('alpha', 1));
        expect(await commit(version('alpha', 1))).toBe('version');
        expect(await commit(version('alpha', 2))).toBe('committed');
        expect(await commit([removeWorkflow('alpha', 'w', 2)])).toBe('committed');
        expect(await commit([removeWorkflow('alpha', 'w', 2)])).toBe('version');
        expect(await count('definitions')).toBe(2);
      });

      it('refuse to point elsewhere, or to be removed, when somebody else was there first', async () => {
        await commit(version('alpha', 1));
        expect(await commit([setCurrentVersion('alpha', 'w', 1, 0, null)])).toBe('version');
        expect(await commit([setCurrentVersion('alpha', 'w', 1, 0, 2)])).toBe('version');
        expect(await commit([removeWorkflow('alpha', 'w', 2)])).toBe('version');
        expect(await commit([setCurrentVersion('alpha', 'w', 1, 5, 1)])).toBe('committed');
      });
    });
  });

  describe(`${name} and its migrations`, () => {
    const first: Migration = { id: 'x/0001', statements: ['CREATE TABLE things (id TEXT PRIMARY KEY) $clustered'] };
    const second: Migration = { id: 'x/0002', statements: ['ALTER TABLE things ADD COLUMN colour TEXT'] };

    it('applies each once, in order, and finds them applied', async () => {
      const { store, cleanUp } = await open(new ManualClock(), [first, second]);
      await store.commit([{ sql: `INSERT INTO things (id, colour) VALUES ('a', 'red')`, params: [] }]);
      const applied = await store.read<{ id: string }>(sql('SELECT id FROM migrations ORDER BY id'));
      expect(applied.map(({ id }) => id)).toEqual(['x/0001', 'x/0002']);
      await store.close();
      await cleanUp();
    });
  });
}

function run(runId: string): RunRow {
  return {
    run_id: runId,
    tenant: 'alpha',
    workspace: null,
    principal: 'p',
    issuer: 'i',
    lane: 'api-key',
    workflow_owner: '*',
    workflow_id: 'w',
    workflow_version: 1,
    parent_run_id: null,
    parent_node_id: null,
    facts: '{}',
    engine_version: 1,
    event_log_schema_version: 2,
    created_at: 1_700_000_000_000,
    status: 'running',
    sequence: 0,
    updated_at: 1_700_000_000_000,
    ended_at: null,
    error_code: null,
    log_seal: null,
  };
}

function event(sequence: number): StoredEvent {
  return { sequence, type: 'log.appended', body: `{"sequence":${sequence}}`, hidden: null };
}

function move(runId: string) {
  return { runId, status: 'running', updatedAt: 1, endedAt: null, errorCode: null, logSeal: null };
}

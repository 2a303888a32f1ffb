import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { keepAlive } from '../../src/store/hosts.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { planTogether } from '../../src/store/postgres-plan.ts';
import { addNewWork, addWork, claimDue, freeOrphans } from '../../src/store/queue.ts';
import { lookup, sql, type Unit, type Write } from '../../src/store/sql.ts';
import { type Store, StoreFailure } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { WriteProbe } from '../../src/store/write-probe.ts';
import { realClock } from '../../src/system/real.ts';
import { freshDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/proxy.ts';
import { TransactionPooler } from '../support/transaction-pooler.ts';

/** What several hosts on one PostgreSQL owe each other: none of them holds up the others. */

describe('hosts that share PostgreSQL', () => {
  let url: string;
  let proxy: DatabaseProxy;
  let store: Store;
  /** Another host, which does as it likes. */
  let other: pg.Client;

  beforeEach(async () => {
    url = await freshDatabase(inject('postgresUrl'));
    proxy = await DatabaseProxy.open(url);
    store = await openPostgres({ url: proxy.url, clock: realClock, migrations: CORE_TABLES, stallMs: 400 });
    other = new pg.Client(url);
    other.on('error', () => {});
    await other.connect();
  });

  afterEach(async () => {
    await other.end().catch(() => {});
    await store.close();
    await proxy.cut();
  });

  const add = (workId: string): Unit => [addWork({ workId, kind: 'k', tenant: 'alpha', dueAt: 0 })];
  const touchHost = (hostId: string): Write => ({
    sql: 'UPDATE hosts SET alive_until = alive_until WHERE host_id = $1',
    params: [hostId],
  });
  const lock = async (statement: string): Promise<void> => {
    await other.query('BEGIN');
    await other.query(statement);
  };
  const claimed = async (): Promise<unknown[]> => {
    const outcome = await store.commit([claimDue('host-a', 10)]);
    return outcome.committed ? outcome.rows[0]!.map(({ work_id }) => work_id) : [];
  };

  it('ask for single rows together, and the same row once', async () => {
    const began = (who: string): Promise<{ began: string; at: string }[]> =>
      store.read(
        lookup('SELECT transaction_timestamp()::text AS began, clock_timestamp()::text AS at, $1::text AS who', who),
      );
    const [[a], [again], [b]] = await Promise.all([began('a'), began('a'), began('b')]);
    expect(b!.began).toBe(a!.began);
    expect(b!.at).not.toBe(a!.at);
    expect(again).toEqual(a);
    const [later] = await began('a');
    expect(later!.began).not.toBe(a!.began);
  });

  it('answer everybody who asks, though one of the questions fails', async () => {
    const half = (of: number) => store.read<{ half: number }>(lookup('SELECT 10 / $1::bigint AS half', of));
    const [two, none, five] = await Promise.allSettled([half(2), half(0), half(5)]);
    expect(two).toMatchObject({ value: [{ half: 5 }] });
    expect(none).toMatchObject({ reason: expect.any(StoreFailure) });
    expect(five).toMatchObject({ value: [{ half: 2 }] });
  });

  it('write what depends on rows of others together, from the moment that those are there', async () => {
    const isThere = "SELECT 1 FROM work WHERE work_id = 'w1' AND tenant = $2";
    const noteIfThere = (tenant: string, hostId: string): Unit => [
      {
        sql: `INSERT INTO hosts (host_id, alive_until) SELECT CAST($1 AS TEXT), 0 WHERE EXISTS (${isThere})`,
        params: [hostId, tenant],
        onlyIf: { table: 'work', where: "work_id = 'w1'", tenant },
      },
    ];
    const noteAll = (...names: string[]) =>
      Promise.all(
        names.flatMap((name) => [
          store.commit(noteIfThere('alpha', name)),
          store.commit(noteIfThere('beta', `${name} of beta`)),
        ]),
      );
    const noted = async (): Promise<unknown[]> =>
      (await store.read(sql('SELECT host_id FROM hosts ORDER BY host_id'))).map((row) => row.host_id);
    await noteAll('a', 'b', 'c');
    expect(await noted()).toEqual([]);
    await other.query(`INSERT INTO work (work_id, kind, tenant, payload, epoch, wakes, crashes)
                       VALUES ('w1', 'k', 'alpha', '', 0, 0, 0)`);
    await noteAll('d', 'e');
    await noteAll('f', 'g');
    expect(await noted()).toEqual(['d', 'e', 'f', 'g']);
  });

  it('look for rows of tenants by an index, whatever the statistics of their table say', async () => {
    // All rows belong to a few tenants, so PostgreSQL takes it that any list of tenants finds one at once.
    await other.query(`INSERT INTO work (work_id, kind, tenant, payload, epoch, wakes, crashes)
                       SELECT 'w' || i, 'k', 'owner' || i % 5, '', 0, 0, 0 FROM generate_series(1, 5000) AS i`);
    await other.query('CREATE INDEX work_by_tenant ON work (tenant)');
    await other.query('ANALYZE work');
    const note = (tenant: string): Unit => [{ sql: 'SELECT 1', params: [], onlyIf: { table: 'work', tenant } }];
    const units = Array.from({ length: 32 }, (_, index) => note(`nobody${index}`));
    const [, check] = planTogether(units, new Set()).checkOf;
    for (const { sql: text } of [check!.write, check!.find]) {
      const { rows } = await other.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
      expect(JSON.stringify(rows)).not.toContain('Seq Scan');
      expect(JSON.stringify(rows)).toContain('work_by_tenant');
    }
  });

  it('never hold a new row while they wait for what guards it', async () => {
    // The first waits for locks longer than the second is willing to.
    const open = (stallMs: number) => openPostgres({ url, clock: realClock, migrations: CORE_TABLES, stallMs });
    const [first, second] = [await open(20_000), await open(400)];
    await first.commit([keepAlive('guard', 1_000), keepAlive('taken', 1_000)]);
    const end = 'UPDATE hosts SET alive_until = 0 WHERE host_id = $1 AND alive_until > 0';
    const guarded: Unit = [
      { sql: end, params: ['guard'], expect: 1, expectation: 'guard' },
      addNewWork({ workId: 'w1', kind: 'k', tenant: 'alpha', dueAt: 0 }),
    ];
    await lock(`UPDATE hosts SET alive_until = 1 WHERE host_id = 'taken'`);
    const group = Promise.all([first.commit([touchHost('taken')]), first.commit(guarded)]);
    await expect.poll(async () => (await other.query('SELECT 1 FROM pg_locks WHERE NOT granted')).rowCount).toBe(1);
    expect(await second.commit(guarded)).toMatchObject({ committed: true });
    await other.query('COMMIT');
    expect((await group)[1]).toEqual({ committed: false, failedExpectation: 'guard' });
    await first.close();
    await second.close();
  });

  it('refuse a row that is there already, and nothing else that was to be inserted with it', async () => {
    const addNew = (workId: string): Unit => [addNewWork({ workId, kind: 'k', tenant: 'alpha', dueAt: 0 })];
    await store.commit(addNew('w1'));
    const outcomes = await Promise.allSettled(['w0', 'w1', 'w2', 'w3', 'w3'].map((id) => store.commit(addNew(id))));
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'rejected',
    ]);
    expect((await claimed()).toSorted()).toEqual(['w0', 'w1', 'w2', 'w3']);
  });

  it('look only at what is due when they claim work, however much waits', async () => {
    const waiting = Array.from(
      { length: 3_000 },
      (_, index) => `('w${index}', 'k', 'alpha', '', 8e12 + ${index}, 0, 0, 0)`,
    );
    await other.query(
      `INSERT INTO work (work_id, kind, tenant, payload, due_at, epoch, wakes, crashes) VALUES ${waiting.join(', ')}`,
    );
    await other.query('ANALYZE work');
    const { sql: text, params } = claimDue('host-a', 10);
    const expanded = text.replaceAll('$now', '(extract(epoch from clock_timestamp()) * 1000)::bigint');
    const { rows } = await other.query({
      text: `EXPLAIN (ANALYZE, FORMAT JSON) ${expanded.replaceAll('$skipLocked', 'FOR UPDATE SKIP LOCKED')}`,
      values: [...params],
    });
    const plan = JSON.stringify(rows);
    const looked = [...plan.matchAll(/"(?:Actual Rows|Rows Removed by Filter)":\s*([\d.]+)/g)].map(([, count]) =>
      Number(count),
    );
    expect(Math.max(...looked), plan).toBeLessThan(100);
  });

  it('have committed a unit when it has arrived: nothing waits for an answer to reach them', async () => {
    await store.commit([keepAlive('host-a', 1_000)]);
    const letThrough = proxy.holdAnswers();
    const guarded = { ...touchHost('host-a'), expect: 1, expectation: 'host' };
    const committing = store.commit([guarded, ...add('w1'), guarded]);
    await expect.poll(async () => (await other.query('SELECT work_id FROM work')).rowCount).toBe(1);
    letThrough();
    expect(await committing).toEqual({ committed: true, rows: [] });
  });

  it('claim what others are not just claiming, and wait for none of it', async () => {
    await store.commit([...add('w1'), ...add('w2')]);
    await lock("SELECT work_id FROM work WHERE work_id = 'w1' FOR UPDATE");
    expect(await claimed()).toEqual(['w2']);
    await other.query('ROLLBACK');
    expect(await claimed()).toEqual(['w1']);
  });

  it('free what dead hosts held, except what others are just freeing', async () => {
    const held = (workId: string): Unit => [
      addWork({ workId, kind: 'k', tenant: 'alpha', dueAt: null, owner: 'host-dead' }),
    ];
    await store.commit([...held('w1'), ...held('w2')]);
    await lock("SELECT work_id FROM work WHERE work_id = 'w1' FOR UPDATE");
    const outcome = await store.commit([freeOrphans(10, { kind: 'run', strikesMax: 2 })]);
    expect(outcome).toMatchObject({ committed: true, rows: [[{ work_id: 'w2' }]] });
  });

  it('write on while a row is locked that one of their units needs, and give that one up in time', async () => {
    await store.commit([keepAlive('host-a', 1_000)]);
    await lock("UPDATE hosts SET alive_until = 0 WHERE host_id = 'host-a'");
    const blocked = store.commit([touchHost('host-a')]);
    const free = store.commit(add('w1'));
    expect(await free).toMatchObject({ committed: true });
    await expect(blocked).rejects.toBeInstanceOf(StoreFailure);
    await other.query('ROLLBACK');
    expect(await store.commit([touchHost('host-a')])).toMatchObject({ committed: true });
  });

  it('send heartbeats whatever their other writes wait for', async () => {
    await lock('LOCK TABLE work');
    const blocked = store.commit(add('w1')).catch((error: Error) => error);
    expect(await store.commit([keepAlive('host-a', 1_000)], { isUrgent: true })).toMatchObject({ committed: true });
    expect(await store.read(sql('SELECT host_id FROM hosts'))).toEqual([{ host_id: 'host-a' }]);
    expect(await blocked).toBeInstanceOf(StoreFailure);
  });

  it('know that they are not ready when writes wait, though queries are answered', async () => {
    await store.commit([keepAlive('host-a', 1_000)]);
    const ready = new WriteProbe(store, realClock, 'host-a');
    await lock('LOCK TABLE hosts IN EXCLUSIVE MODE');
    expect(await ready.isWritable()).toBe(false);
    expect(await store.read(sql('SELECT host_id FROM hosts'))).toHaveLength(1);
    await other.query('ROLLBACK');
    expect(await ready.isWritable()).toBe(true);
  });

  it('lose a transaction that they leave open, and the locks of it', async () => {
    const setting = (name: string): Unit => [
      {
        sql: `INSERT INTO hosts (host_id, alive_until) SELECT name, setting::bigint FROM pg_settings WHERE name = $1`,
        params: [name],
      },
    ];
    const names = ['idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout', 'transaction_timeout'];
    for (const name of names) await store.commit(setting(name));
    const rows = await store.read(sql('SELECT host_id, alive_until FROM hosts ORDER BY host_id'));
    expect(rows).toEqual(names.map((name) => ({ host_id: name, alive_until: name === 'lock_timeout' ? 100 : 400 })));
  });

  it('wait until there is a connection to be had again', async () => {
    await other.query("CREATE ROLE guest LOGIN PASSWORD 'guest'").catch(() => {});
    const { pathname } = new URL(url);
    const name = pathname.slice(1);
    await other.query(`ALTER DATABASE ${name} OWNER TO guest`);
    await other.query('DROP FUNCTION capstan_expect; DROP TABLE migrations');
    await other.query(`ALTER DATABASE ${name} CONNECTION LIMIT 0`);
    const guestUrl = new URL(proxy.url);
    guestUrl.username = 'guest';
    guestUrl.password = 'guest';
    const before = proxy.connections;
    const opening = openPostgres({ url: guestUrl.href, clock: realClock, migrations: [] });
    // It was turned away and comes back.
    await expect.poll(() => proxy.connections).toBeGreaterThan(before + 1);
    await other.query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    const guest = await opening;
    expect(await guest.read(sql('SELECT 1 AS one'))).toEqual([{ one: 1 }]);
    await guest.close();
  });
});

describe('a host behind a pooler that gives each transaction another session', () => {
  let pooler: TransactionPooler;
  let direct: pg.Client;
  const stores: Store[] = [];

  beforeEach(async () => {
    const url = await freshDatabase(inject('postgresUrl'));
    pooler = await TransactionPooler.open(url);
    direct = new pg.Client(url);
    await direct.connect();
  });

  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    await pooler.close();
    await direct.end();
  });

  const open = async (): Promise<Store> => {
    const store = await openPostgres({ url: pooler.url, clock: realClock, migrations: CORE_TABLES, stallMs: 400 });
    stores.push(store);
    return store;
  };
  const alive = sql('SELECT host_id FROM hosts ORDER BY host_id');

  it('migrates, writes and reads, beside another one', async () => {
    const [one, two] = await Promise.all([open(), open()]);
    for (let round = 0; round < 5; round++) {
      const commits = await Promise.all(
        [one, two].flatMap((store, index) => [
          store.commit([keepAlive(`host-${index}`, 1_000)]),
          store.commit([keepAlive(`host-${index}-urgent`, 1_000)], { isUrgent: true }),
        ]),
      );
      expect(commits.every(({ committed }) => committed)).toBe(true);
      expect((await one.read(alive)).length).toBe(4);
      expect(await two.read(alive)).toEqual(await one.read(alive));
    }
    expect(pooler.transactions).toBeGreaterThan(30);
  });

  it('is refused what it expects wrongly, and told what', async () => {
    const store = await open();
    const wrong = { ...keepAlive('host-a', 1_000), expect: 2, expectation: 'two' };
    expect(await store.commit([keepAlive('host-b', 1_000), wrong])).toEqual({
      committed: false,
      failedExpectation: 'two',
    });
    expect(await store.read(alive)).toEqual([]);
  });

  it('has its limits in every transaction, and leaves none of them to others', async () => {
    const store = await open();
    await store.commit([keepAlive('host-a', 1_000)]);
    await direct.query('BEGIN');
    await direct.query('LOCK TABLE hosts');
    await expect(store.commit([keepAlive('host-a', 1_000)])).rejects.toBeInstanceOf(StoreFailure);
    await direct.query('ROLLBACK');
    const setting = sql(`SELECT current_setting('statement_timeout') AS ms, pg_backend_pid() AS pid`);
    const seen = await Promise.all(Array.from({ length: 6 }, () => store.read<{ ms: string; pid: number }>(setting)));
    expect(new Set(seen.flat().map(({ pid }) => pid)).size).toBeGreaterThan(1);
    expect(seen.flat().map(({ ms }) => ms)).toEqual(Array(6).fill('0'));
  });
});

describe('a table that a newer host has given another column', () => {
  it('is read and written by an older host as before', async () => {
    const url = await freshDatabase(inject('postgresUrl'));
    const store = await openPostgres({ url, clock: realClock, migrations: CORE_TABLES });
    const newer = new pg.Client(url);
    await newer.connect();
    const claim: Write = { sql: 'UPDATE hosts SET alive_until = 7 RETURNING *', params: [], returns: true };
    const all = sql('SELECT * FROM hosts');
    await store.commit([keepAlive('host-a', 1_000)]);
    for (const column of ['first', 'second']) {
      // Often enough for every connection to have them prepared.
      await Promise.all(Array.from({ length: 20 }, () => store.read(all)));
      await store.commit([claim]);
      await newer.query(`ALTER TABLE hosts ADD COLUMN ${column} TEXT NOT NULL DEFAULT 'x'`);
      const read = await Promise.all(Array.from({ length: 20 }, () => store.read(all)));
      for (const rows of read) expect(rows).toMatchObject([{ host_id: 'host-a', [column]: 'x' }]);
      expect(await store.commit([claim])).toMatchObject({
        committed: true,
        rows: [[{ host_id: 'host-a', [column]: 'x' }]],
      });
    }
    await newer.end();
    await store.close();
  });
});

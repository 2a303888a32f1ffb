import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Caller } from '../../src/capabilities/request.ts';
import type { AuditRecord } from '../../src/capabilities/trust/audit/door.ts';
import { AUDIT_TABLES, type EntryRow, insertEntries } from '../../src/capabilities/trust/audit/records.ts';
import { AuditService } from '../../src/capabilities/trust/audit/service.ts';
import { Hub } from '../../src/runtime/hub.ts';
import { KeyedMutex } from '../../src/runtime/keyed-mutex.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { sql } from '../../src/store/sql.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Migration, Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { newKeyPair } from '../../src/system/ed25519.ts';
import { createEgress } from '../../src/system/egress.ts';
import { realClock, realIds } from '../../src/system/real.ts';
import { type Bundle, problemsOf } from '../support/audit-log.ts';
import { freshDatabase, freshFolder } from '../support/database.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Goal: what the audit log promises of its store, and of any number of hosts that seal into it at the same time. */

const MIGRATIONS = [...CORE_TABLES, ...AUDIT_TABLES];
const SECONDS = 1_000;

interface LogSettings {
  readonly keyName?: string;
  readonly secret?: string;
  readonly auditSigners?: readonly string[];
  readonly auditRoots?: readonly string[];
  readonly auditAnchors?: readonly string[];
}

interface Opened {
  readonly store: Store;
  /** Another host's view of the same store; where there can only be one host, it is the same. */
  another(): Promise<Store>;
}

const STORES: Record<string, (clock: ManualClock) => Promise<Opened>> = {
  SQLite: async (clock) => {
    const store = await openSqlite({ folder: freshFolder().path, clock, migrations: MIGRATIONS });
    return { store, another: async () => store };
  },
  PostgreSQL: async (clock) => {
    const url = await freshDatabase(inject('postgresUrl'));
    const open = () => openPostgres({ url, clock, migrations: MIGRATIONS, useOwnClock: true });
    return { store: await open(), another: open };
  },
};

/** A store of an older version, and the same one opened by this version. */
const UPGRADED: Record<
  string,
  (clock: ManualClock, older: readonly Migration[]) => Promise<{ store: Store; reopen(): Promise<Store> }>
> = {
  SQLite: async (clock, older) => {
    const { path: folder } = freshFolder();
    const open = (migrations: readonly Migration[]) => openSqlite({ folder, clock, migrations });
    return { store: await open(older), reopen: () => open(MIGRATIONS) };
  },
  PostgreSQL: async (clock, older) => {
    const url = await freshDatabase(inject('postgresUrl'));
    const open = (migrations: readonly Migration[]) => openPostgres({ url, clock, migrations, useOwnClock: true });
    return { store: await open(older), reopen: () => open(MIGRATIONS) };
  },
};

describe.each(Object.keys(STORES))('the audit log on %s', (kind) => {
  let clock: ManualClock;
  let opened: Opened;
  const stores = new Set<Store>();

  beforeEach(async () => {
    clock = new ManualClock();
    opened = await STORES[kind]!(clock);
    stores.add(opened.store);
  });

  afterEach(async () => {
    for (const store of stores) await store.close();
    stores.clear();
  });

  describe('keeps what it has', () => {
    it.each(['audit_entries', 'audit_checkpoints'])('no row of %s can be changed or taken away', async (table) => {
      const { store } = opened;
      await (await log()).verify(callerOf('alpha'), {});
      const before = await store.read(sql(`SELECT * FROM ${table}`));
      const attempts = [
        `UPDATE ${table} SET tenant = 'beta'`,
        `DELETE FROM ${table}`,
        `DELETE FROM ${table} WHERE tenant = 'alpha'`,
        ...(kind === 'SQLite'
          ? [`INSERT OR REPLACE INTO ${table} SELECT * FROM ${table}`, `REPLACE INTO ${table} SELECT * FROM ${table}`]
          : [`TRUNCATE ${table}`]),
      ];
      for (const attempt of attempts) {
        await expect(store.commit([{ sql: attempt, params: [] }])).rejects.toThrow();
        expect(await store.read(sql(`SELECT * FROM ${table}`))).toEqual(before);
      }
      expect(before.length).toBeGreaterThan(0);
    });
  });

  it('refuses entries of a chain that has one of them, and nothing else of the same transaction', async () => {
    const { store } = opened;
    const append = (tenant: string, sequences: readonly number[]) =>
      store.commit(insertEntries(sequences.map((sequence) => entry(tenant, sequence))));
    await append('alpha', [1]);
    const outcomes = await Promise.allSettled([
      append('beta', [1, 2]),
      append('alpha', [2, 1, 3]),
      append('gamma', [1]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await store.read(sql('SELECT tenant, sequence FROM audit_entries ORDER BY tenant, sequence'))).toEqual([
      { tenant: 'alpha', sequence: 1 },
      { tenant: 'beta', sequence: 1 },
      { tenant: 'beta', sequence: 2 },
      { tenant: 'gamma', sequence: 1 },
    ]);
    await append('alpha', [2]);
  });

  describe('seals', () => {
    it('in the order in which things happened, each tenant for itself', async () => {
      const audit = await log();
      for (const tenant of ['alpha', 'beta', 'alpha', 'beta', 'alpha']) {
        await opened.store.commit(audit.record(thing(tenant, `thing-${clock.now()}`)));
        clock.advance(1);
      }
      const alpha = await exported(audit, 'alpha');
      const targets = alpha.entries.filter(({ action }) => action === 'run.create').map(({ target }) => target);
      expect(targets).toEqual([...targets].sort());
      expect(targets).toHaveLength(3);
      expect(problemsOf(alpha)).toEqual([]);
      expect(problemsOf(await exported(audit, 'beta'))).toEqual([]);
    });

    it('nothing of a transaction that did not happen', async () => {
      const audit = await log();
      const impossible = {
        sql: 'DELETE FROM work WHERE work_id = $1',
        params: ['nothing'],
        expect: 1,
        expectation: 'work',
      };
      await opened.store.commit([...audit.record(thing('alpha', 'a')), impossible]);
      expect((await exported(audit, 'alpha')).entries.map(({ action }) => action)).toEqual(['audit.opened']);
    });

    it('with a checkpoint for at most a thousand entries', async () => {
      const audit = await log();
      const units = Array.from({ length: 2_345 }, (_, index) => audit.record(thing('alpha', `thing-${index}`)));
      await Promise.all(units.map((unit) => opened.store.commit(unit)));
      await audit.handleSealing(undefined as never);
      const { checkpoints, chainValid } = await audit.verify(callerOf('alpha'), {});
      expect(chainValid).toBe(true);
      const places = [0, ...checkpoints.map(({ atSequence }) => atSequence)];
      const gaps = places.slice(1).map((place, index) => place - places[index]!);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(1_000);
      expect(places.length).toBeGreaterThanOrEqual(3);
      expect(problemsOf(await exported(audit, 'alpha'))).toEqual([]);
    });

    it('the records of many tenants, each into its own chain and in the order in which they came', async () => {
      const audit = await log();
      const tenants = ['alpha', 'beta', 'gamma'];
      const places = Array.from({ length: 2_000 }, (_, place) => place);
      for (let start = 0; start < places.length; start += 50) {
        const part = places.slice(start, start + 50);
        const records = part.flatMap((place) => tenants.map((tenant) => thing(tenant, `thing-${place}`)));
        await opened.store.commit(records.flatMap((record) => audit.record(record)));
      }
      await audit.handleSealing(undefined as never);
      expect(await opened.store.read(sql('SELECT * FROM audit_pending'))).toEqual([]);
      for (const tenant of tenants) {
        const { entries } = await exported(audit, tenant);
        expect(entries.map(({ target }) => target)).toEqual(places.map((place) => `thing-${place}`));
        expect((await audit.verify(callerOf(tenant), {})).chainValid).toBe(true);
      }
    });

    it('what was pending before an upgrade put pending records into another order', async () => {
      const before = MIGRATIONS.slice(
        0,
        MIGRATIONS.findIndex(({ id }) => id === 'audit/0003'),
      );
      const { store: older, reopen } = await UPGRADED[kind]!(clock, before);
      const audit = await log(older);
      for (const place of [1, 2, 3]) {
        for (const tenant of ['beta', 'alpha']) await older.commit(audit.record(thing(tenant, `thing-${place}`)));
      }
      await older.close();
      stores.delete(older);
      const upgraded = await log(await reopen());
      for (const tenant of ['alpha', 'beta']) {
        const bundle = await exported(upgraded, tenant);
        const targets = bundle.entries.filter(({ action }) => action === 'run.create').map(({ target }) => target);
        expect(targets).toEqual(['thing-1', 'thing-2', 'thing-3']);
        expect(problemsOf(bundle)).toEqual([]);
      }
    });

    it('with a checkpoint before the end of an entry has waited for five minutes', async () => {
      const audit = await log();
      const covered = async () => (await audit.verify(callerOf('alpha'), {})).checkpoints.at(-1)?.atSequence;
      await opened.store.commit(audit.record(thing('alpha', 'a')));
      expect(await covered()).toBe(1);
      await opened.store.commit(audit.record(thing('alpha', 'b')));
      const { dueAgainAt } = await audit.handleSealing(undefined as never);
      expect(await covered()).toBe(1);
      expect(dueAgainAt! - clock.now()).toBeLessThanOrEqual(300 * SECONDS);
      clock.advance(dueAgainAt! - clock.now());
      await audit.handleSealing(undefined as never);
      expect(await covered()).toBe(2);
    });

    it('into one chain without gaps and doubles, however many hosts seal at once', async () => {
      const hosts = await Promise.all([log(), log(await opened.another()), log(await opened.another())]);
      const write = async (host: AuditService, name: string): Promise<void> => {
        for (let count = 0; count < 40; count++) {
          await opened.store.commit(host.record(thing('alpha', `${name}-${count}`)));
          await host.handleSealing(undefined as never);
        }
      };
      await Promise.all(hosts.map((host, index) => write(host, `host-${index}`)));
      const bundle = await exported(hosts[0]!, 'alpha');
      expect(problemsOf(bundle)).toEqual([]);
      const targets = bundle.entries.map(({ target }) => target).filter((target) => target !== undefined);
      expect(new Set(targets).size).toBe(120);
      expect(targets).toHaveLength(120);
    });
  });

  describe('is signed', () => {
    it('by one key, whichever host signs, and by a new one when the operator names it', async () => {
      const first = await log();
      const second = await log(await opened.another());
      expect(second.publicKey).toBe(first.publicKey);
      await opened.store.commit(first.record(thing('alpha', 'a')));
      await exported(first, 'alpha');
      const third = await log(await opened.another(), { keyName: 'audit-of-2027' });
      expect(third.publicKey).not.toBe(first.publicKey);
      await opened.store.commit(third.record(thing('alpha', 'b')));
      const bundle = await exported(third, 'alpha');
      expect(problemsOf(bundle)).toEqual([]);
      expect(new Set(bundle.checkpoints.map(({ signingKeyId }) => signingKeyId)).size).toBe(2);
      expect(await first.verify(callerOf('alpha'), {})).toMatchObject({ chainValid: true, anomalies: [] });
    });

    it('by a key that is sealed at rest where there is a secret, and unreadable under another', async () => {
      const secret = 'a secret of thirty-two characters';
      const sealed = await log(opened.store, { secret });
      const [row] = await opened.store.read<{ private_key: string }>(sql('SELECT private_key FROM audit_keys'));
      expect(row!.private_key).toContain('.');
      expect((await log(opened.store, { secret })).publicKey).toBe(sealed.publicKey);
      expect((await log(opened.store, { secret: `${secret}, changed` })).publicKey).not.toBe(sealed.publicKey);
      await expect(log(opened.store, { keyName: 'audit-1' })).rejects.toThrow('CAPSTAN_SECRET');
    });

    it('by a key of an earlier version, if that was sealed; by one that lay open only if the operator pins it', async () => {
      const secret = 'a secret of thirty-two characters';
      const open = await log();
      await exported(open, 'alpha');
      const sealed = await log(opened.store, { secret });
      await opened.store.commit(sealed.record(thing('alpha', 'b')));
      await exported(sealed, 'alpha');
      const forget = 'UPDATE audit_keys SET mac = NULL, endorsed_by = NULL, endorsement = NULL';
      await opened.store.commit([{ sql: forget, params: [] }]);
      const again = await log(opened.store, { secret });
      expect(again.publicKey).toBe(sealed.publicKey);
      const kinds = async (audit: AuditService) =>
        (await audit.verify(callerOf('alpha'), {})).anomalies.map(({ kind, atSeq }) => `${kind} ${atSeq}`);
      expect(await kinds(again)).toEqual(['signature-invalid 1']);
      expect(await kinds(await log(opened.store, { secret, auditRoots: [open.publicKey] }))).toEqual([]);
    });

    it('by the trusted key alone, though somebody put a newer one with its private half into the table', async () => {
      const first = await log();
      const { publicKey, privateKey } = newKeyPair();
      const columns = 'INSERT INTO audit_keys (key_id, public_key, private_key, created_at) VALUES ($1, $2, $3, $4)';
      await opened.store.commit([{ sql: columns, params: ['forged', publicKey, privateKey, clock.now() + 1] }]);
      await opened.store.commit([{ sql: columns, params: ['noise', 'nonsense', '', clock.now() + 2] }]);
      expect((await log()).publicKey).toBe(first.publicKey);
      await expect(log(opened.store, { keyName: 'forged' })).rejects.toThrow('the key before it did not sign it');
    });
  });

  async function log(store = opened.store, { keyName, secret, ...more }: LogSettings = {}) {
    stores.add(store);
    const settings = {
      apiKeys: [],
      auditRequests: false,
      auditKey: keyName,
      secret,
      auditSigners: [],
      auditRoots: [],
      auditAnchors: [],
      auditAnchorToken: undefined,
      ...more,
    };
    const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    const runtime = {
      store,
      clock,
      ids: realIds(),
      log: silent,
      hub: new Hub(),
      mutex: new KeyedMutex(),
      egress: createEgress({ clock: realClock, allowLoopback: true }),
    } as unknown as Runtime;
    const service = new AuditService({ runtime, executor: { hostId: 'host-1' }, version: '1' }, settings);
    await service.prepare();
    return service;
  }
});

function thing(tenant: string, target: string): AuditRecord {
  return { tenant, actor: 'ada', action: 'run.create', target };
}

/** An entry as a chain has it; its hashes are not looked at. */
function entry(tenant: string, sequence: number): EntryRow {
  const hashes = { prev_hash: null, hash: 'none' };
  const what = { actor: 'ada', action: 'run.create', target: null, outcome: 'success', details: null };
  return { tenant, sequence, workspace: null, at: 0, ...what, ...hashes };
}

function callerOf(tenant: string): Caller {
  return { subject: { tenant } } as Caller;
}

async function exported(audit: AuditService, tenant: string): Promise<Bundle> {
  const pieces = await audit.export(callerOf(tenant), {});
  let text = '';
  for await (const piece of pieces as AsyncGenerator<string>) text += piece;
  return JSON.parse(text) as Bundle;
}

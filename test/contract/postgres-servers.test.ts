import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { keepAlive } from '../../src/store/hosts.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { sql } from '../../src/store/sql.ts';
import { type Store, StoreFailure } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { realClock } from '../../src/system/real.ts';
import { freshDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

/** Which server of several a store uses; `test/blackbox/failover.test.ts` has a real primary and its standby. */

/** Nobody listens there. */
const NOWHERE = '127.0.0.1:1';

describe('a database of several servers', () => {
  let url: string;
  let first: DatabaseProxy;
  let second: DatabaseProxy;
  const stores: Store[] = [];

  beforeEach(async () => {
    url = await freshDatabase(inject('postgresUrl'));
    [first, second] = await Promise.all([DatabaseProxy.open(url), DatabaseProxy.open(url)]);
  });

  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    await Promise.allSettled([first.cut(), second.cut()]);
  });

  const at = (...addresses: readonly string[]): string => url.replace(new URL(url).host, addresses.join(','));
  const addressOf = (proxy: DatabaseProxy): string => new URL(proxy.url).host;
  const open = async (address: string): Promise<Store> => {
    const store = await openPostgres({ url: address, clock: realClock, migrations: CORE_TABLES, stallMs: 400 });
    stores.push(store);
    return store;
  };
  const alive = (store: Store): Promise<unknown> => store.commit([keepAlive('host-a', 1_000)]);

  it('is used by way of one that answers', async () => {
    const store = await open(at(NOWHERE, addressOf(first)));
    expect(await alive(store)).toMatchObject({ committed: true });
    expect(await store.read(sql('SELECT host_id FROM hosts'))).toHaveLength(1);
  });

  it('is used by way of another one when the first is gone: for writes, reads and hints', async () => {
    const store = await open(at(addressOf(first), addressOf(second)));
    const other = await open(at(addressOf(second)));
    await alive(store);
    const heard: string[] = [];
    store.onHint((topic) => heard.push(topic));
    const connections = second.connections;
    await first.cut();
    const committed = await until(
      () => alive(store).catch(() => undefined),
      (outcome) => outcome !== undefined,
    );
    expect(committed).toMatchObject({ committed: true });
    expect(await store.read(sql('SELECT host_id FROM hosts'))).toHaveLength(1);
    expect(second.connections).toBeGreaterThan(connections);
    await until(
      async () => {
        other.hint(['run:one']);
        await other.read(sql('SELECT 1'));
        return heard;
      },
      (topics) => topics.includes('run:one'),
    );
  });

  it('fails at once if none of them will ever let it in, and names them all if none answers', async () => {
    const stranger = new URL(url);
    stranger.password = 'wrong';
    const wrong = stranger.href.replace(stranger.host, `${addressOf(first)},${addressOf(second)}`);
    await expect(open(wrong)).rejects.toThrow('password authentication failed');
    await expect(open(at(NOWHERE, '127.0.0.1:2'))).rejects.toThrow(/127\.0\.0\.1:1: .*; 127\.0\.0\.1:2: /);
  });

  it('is not written to while its server is read-only, and used again afterwards', async () => {
    const store = await open(first.url);
    await alive(store);
    const operator = new pg.Client(url);
    await operator.connect();
    const name = new URL(url).pathname.slice(1);
    await operator.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    first.drop();
    await expect(alive(store)).rejects.toBeInstanceOf(StoreFailure);
    await expect(store.read(sql('SELECT 1'))).rejects.toBeInstanceOf(StoreFailure);
    await operator.query('SET transaction_read_only = off');
    await operator.query(`ALTER DATABASE ${name} SET default_transaction_read_only = off`);
    expect(await alive(store)).toMatchObject({ committed: true });
    await operator.end();
  });
});

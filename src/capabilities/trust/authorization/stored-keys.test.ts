import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { Statement } from '../../../store/sql.ts';
import type { Store } from '../../../store/store.ts';
import { hashKey } from './keys.ts';
import type { KeyRow } from './records.ts';
import { StoredKeys } from './stored-keys.ts';

/** Goal: what is remembered of stored keys. Method: a store that says how often it was read, and answers when it is told to. */

const HASH = hashKey('key of ada');

describe('a stored key', () => {
  it('is read once a second on a store that no other process writes to', async () => {
    const { keys, clock, store } = setUp();
    for (let times = 0; times < 3; times++) expect(await keys.caller(HASH)).toMatchObject({ keyId: 'key-ada' });
    expect(store.reads).toBe(1);
    clock.advance(1_000);
    await keys.caller(HASH);
    expect(store.reads).toBe(2);
  });

  it('is read for each request where hosts share the store', async () => {
    const { keys, store } = setUp({ isShared: true });
    for (let times = 0; times < 3; times++) await keys.caller(HASH);
    expect(store.reads).toBe(3);
  });

  it('is read again when a key has changed', async () => {
    const { keys, store } = setUp();
    await keys.caller(HASH);
    store.row = { ...store.row, revoked_at: 0 };
    keys.forget();
    expect(await keys.caller(HASH)).toMatchObject({ refused: 'key_revoked' });
  });

  it('is not remembered as it was read before a change', async () => {
    const { keys, store } = setUp();
    const answers = store.hold();
    const before = keys.caller(HASH);
    store.row = { ...store.row, revoked_at: 0 };
    keys.forget();
    answers();
    expect(await before).toMatchObject({ keyId: 'key-ada' });
    expect(await keys.caller(HASH)).toMatchObject({ refused: 'key_revoked' });
  });

  it('ends in time while it is remembered', async () => {
    const { keys, clock, store } = setUp();
    store.row = { ...store.row, expires_at: clock.now() + 500 };
    expect(await keys.caller(HASH)).toMatchObject({ keyId: 'key-ada' });
    clock.advance(501);
    expect(await keys.caller(HASH)).toMatchObject({ refused: 'key_expired' });
    expect(store.reads).toBe(1);
  });

  it('is read again if the clock was put back', async () => {
    const { keys, clock, store } = setUp();
    clock.advance(60_000);
    await keys.caller(HASH);
    clock.advance(-30_000);
    await keys.caller(HASH);
    expect(store.reads).toBe(2);
  });

  it('that does not exist is looked for each time', async () => {
    const { keys, store } = setUp();
    for (let times = 0; times < 2; times++)
      expect(await keys.caller(hashKey('another'))).toMatchObject({ refused: 'unauthenticated' });
    expect(store.reads).toBe(2);
  });
});

/** A store with one key. `hold` keeps what it reads until the function that it returns is called. */
class OneKeyStore {
  reads = 0;
  row: KeyRow;
  #answered = Promise.resolve();

  constructor(now: number) {
    this.row = {
      ...{ key_id: 'key-ada', hash: HASH, name: 'ada', prefix: 'hk_live', tenant: 'alpha', workspace: null },
      ...{ principal: 'ada', role: 'viewer', scopes: '[]', is_test: 0, created_at: now, expires_at: null },
      ...{ revoked_at: null, last_used_at: now, person: null, pool: null },
    };
  }

  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#answered = promise;
    return resolve;
  }

  async read(now: number, hash: unknown): Promise<object[]> {
    this.reads++;
    const found = hash === HASH ? [{ ...this.row, now }] : [];
    await this.#answered;
    return found;
  }
}

function setUp({ isShared = false } = {}) {
  const clock = new ManualClock();
  const one = new OneKeyStore(clock.now());
  const store = {
    isShared,
    read: ({ params: [hash] }: Statement) => one.read(clock.now(), hash),
    commit: async () => ({ committed: true, rows: [] }),
  } as Partial<Store> as Store;
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  return { keys: new StoredKeys({ store, clock, log }), clock, store: one };
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { openInMemory } from '../../../store/sqlite.ts';
import type { Store } from '../../../store/store.ts';
import { INTERRUPT_TABLES } from './records.ts';
import { TokenKeys } from './token-keys.ts';
import { mintToken, type TokenClaims } from './tokens.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const CLAIMS: TokenClaims = { runId: 'run-1', nodeId: 'n', interruptId: 'int-1', expiresAt: 0, intent: 'resolve' };

/** Hosts that share a store, and a clock that is moved by hand. */
describe('keys of tokens', () => {
  const clock = new ManualClock();
  let store: Store;
  let reads = 0;
  let made = 0;

  beforeAll(async () => {
    store = await openInMemory({ clock, migrations: INTERRUPT_TABLES });
  });
  afterAll(async () => {
    await store.close();
  });

  function newHost(secret?: string): TokenKeys {
    const counted = {
      ...store,
      read: (statement: never) => {
        reads++;
        return store.read(statement);
      },
    };
    const ids = { next: (prefix: string) => `${prefix}${++made}` };
    return new TokenKeys({ store: counted, clock, ids } as unknown as Runtime, secret);
  }
  const mint = async (host: TokenKeys): Promise<string> => mintToken(CLAIMS, await host.signing());
  const rotate = async (host: TokenKeys): Promise<void> => void (await store.commit(await host.rotation()));

  it('are made when the first token is, and known to every host', async () => {
    const [one, two] = [newHost(), newHost()];
    expect(await one.read('made.up')).toBeUndefined();
    const token = await mint(one);
    expect(await one.read(token)).toMatchObject(CLAIMS);
    expect(await two.read(token)).toMatchObject(CLAIMS);
    expect((await two.signing()).keyId).toBe((await one.signing()).keyId);
  });

  it('are known after a restart', async () => {
    const token = await mint(newHost());
    expect(await newHost().read(token)).toMatchObject(CLAIMS);
  });

  describe('under the secret of the host', () => {
    const SECRET = 'a secret of thirty-two characters';

    it('lie sealed, and are known to every host that has it', async () => {
      const token = await mint(newHost(SECRET));
      expect(await newHost(SECRET).read(token)).toMatchObject(CLAIMS);
      const rows = await store.read<{ secret: string }>({ sql: 'SELECT secret FROM token_keys', params: [] });
      expect(rows.filter(({ secret }) => secret.includes('.'))).toHaveLength(1);
      expect(await newHost().read(token)).toBeUndefined();
      expect(await newHost(`${SECRET}, but another`).read(token)).toBeUndefined();
    });

    it('do not count where somebody wrote them into the database', async () => {
      const forged = { keyId: 'tk-forged', secret: 'made-up' };
      const insert = 'INSERT INTO token_keys (key_id, secret, created_at) VALUES ($1, $2, $3)';
      await store.commit([{ sql: insert, params: [forged.keyId, forged.secret, clock.now() + 1] }]);
      expect(await newHost().read(mintToken(CLAIMS, forged))).toMatchObject(CLAIMS);
      expect(await newHost(SECRET).read(mintToken(CLAIMS, forged))).toBeUndefined();
      await store.commit([{ sql: 'DELETE FROM token_keys WHERE key_id = $1', params: [forged.keyId] }]);
    });
  });

  it('are not looked up for every token, nor for every text that is none', async () => {
    const host = newHost();
    const token = await mint(host);
    const before = reads;
    for (let count = 0; count < 50; count++) await host.read(token);
    for (let count = 0; count < 50; count++) await host.read(`made.up-${count}`);
    expect(reads - before).toBe(0);
    clock.advance(1_000);
    for (let count = 0; count < 50; count++) await host.read(`made.up-${count}`);
    expect(reads - before).toBe(1);
  });

  it('change after a month, on whichever host that falls to, though it never saw one', async () => {
    const serving = newHost();
    const { keyId } = await serving.signing();
    clock.advance(29 * DAY_MS);
    await rotate(newHost());
    clock.advance(60_000);
    expect((await serving.signing()).keyId).toBe(keyId);
    clock.advance(2 * DAY_MS);
    await rotate(newHost());
    expect((await newHost().signing()).keyId).not.toBe(keyId);
  });

  it('of another host are believed at once, however fresh what is known', async () => {
    const host = newHost();
    clock.advance(31 * DAY_MS);
    const { keyId } = await host.signing();
    await rotate(newHost());
    clock.advance(1_000);
    const another = newHost();
    expect((await another.signing()).keyId).not.toBe(keyId);
    expect(await host.read(await mint(another))).toMatchObject(CLAIMS);
  });

  it('are believed long after they have stopped to sign, and not for ever', async () => {
    const host = newHost();
    const token = await mint(host);
    for (let month = 0; month < 2; month++) {
      clock.advance(31 * DAY_MS);
      await rotate(host);
    }
    expect(await newHost().read(token)).toMatchObject(CLAIMS);
    clock.advance(31 * DAY_MS);
    await rotate(host);
    expect(await newHost().read(token)).toBeUndefined();
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openInMemory } from '../../../store/sqlite.ts';
import type { Store } from '../../../store/store.ts';
import { realClock } from '../../../system/real.ts';
import { WEBHOOK_TABLES, type WebhookRow } from './records.ts';
import { WebhookSealer } from './sealer.ts';

const TARGET = { url: 'https://example.com/XYZZY', secret: 'f'.repeat(64) };
const SECRET = 'a secret of the operator, long enough';

describe('a sealed webhook target', () => {
  let store: Store;
  beforeEach(async () => {
    store = await openInMemory({ clock: realClock, migrations: WEBHOOK_TABLES });
  });
  afterEach(async () => {
    await store.close();
  });

  const sealer = (secret?: string): WebhookSealer => new WebhookSealer(store, secret);
  const rowOf = (sealed: string, webhookId = 'wh-1') => ({ sealed, webhook_id: webhookId }) as WebhookRow;

  it.each([undefined, SECRET])('is unsealed by every host with the same secret: %s', async (secret) => {
    const sealed = await sealer(secret).seal(TARGET, 'wh-1');
    expect(sealed).not.toContain('XYZZY');
    expect(await sealer(secret).unseal(rowOf(sealed))).toEqual(TARGET);
  });

  it('is sealed under one stored key by hosts that start at the same time', async () => {
    const hosts = Array.from({ length: 5 }, () => sealer());
    const sealed = await Promise.all(hosts.map((host) => host.seal(TARGET, 'wh-1')));
    for (const text of sealed) expect(await sealer().unseal(rowOf(text))).toEqual(TARGET);
  });

  it('stays readable when the operator sets a secret, and not when a secret is removed', async () => {
    const before = await sealer().seal(TARGET, 'wh-1');
    expect(await sealer(SECRET).unseal(rowOf(before))).toEqual(TARGET);
    const after = await sealer(SECRET).seal(TARGET, 'wh-1');
    expect(await sealer().unseal(rowOf(after))).toBeUndefined();
    expect(await sealer(`${SECRET}, but another`).unseal(rowOf(after))).toBeUndefined();
  });

  it('is bound to one webhook', async () => {
    const sealed = await sealer().seal(TARGET, 'wh-1');
    expect(await sealer().unseal(rowOf(sealed, 'wh-2'))).toBeUndefined();
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import type { Store } from '../../../store/store.ts';
import { realClock } from '../../../system/real.ts';
import { WebhookKeys } from './keys.ts';
import { WEBHOOK_TABLES, type WebhookRow } from './records.ts';

const CONFIDENTIAL = { url: 'https://example.com/XYZZY', secret: 'f'.repeat(64) };
const SECRET = 'a secret of the operator, long enough';

describe('what webhooks keep', () => {
  let folder: ReturnType<typeof freshFolder>;
  let store: Store;
  beforeEach(async () => {
    folder = freshFolder();
    store = await openSqlite({ folder: folder.path, clock: realClock, migrations: WEBHOOK_TABLES, durable: false });
  });
  afterEach(async () => {
    await store.close();
    folder.remove();
  });

  const keys = (secret?: string): WebhookKeys => new WebhookKeys(store, secret);
  const rowOf = (sealed: string, webhookId = 'wh-1') => ({ sealed, webhook_id: webhookId }) as WebhookRow;

  it.each([undefined, SECRET])('can be opened by every host with the same secret: %s', async (secret) => {
    const sealed = await keys(secret).seal(CONFIDENTIAL, 'wh-1');
    expect(sealed).not.toContain('XYZZY');
    expect(await keys(secret).open(rowOf(sealed))).toEqual(CONFIDENTIAL);
  });

  it('is sealed by hosts that start at the same time under one key', async () => {
    const hosts = Array.from({ length: 5 }, () => keys());
    const sealed = await Promise.all(hosts.map((host) => host.seal(CONFIDENTIAL, 'wh-1')));
    for (const text of sealed) expect(await keys().open(rowOf(text))).toEqual(CONFIDENTIAL);
  });

  it('stays readable when the operator begins to give a secret, and is shut when that is taken away', async () => {
    const before = await keys().seal(CONFIDENTIAL, 'wh-1');
    expect(await keys(SECRET).open(rowOf(before))).toEqual(CONFIDENTIAL);
    const after = await keys(SECRET).seal(CONFIDENTIAL, 'wh-1');
    expect(await keys().open(rowOf(after))).toBeUndefined();
    expect(await keys(`${SECRET}, but another`).open(rowOf(after))).toBeUndefined();
  });

  it('belongs to one webhook', async () => {
    const sealed = await keys().seal(CONFIDENTIAL, 'wh-1');
    expect(await keys().open(rowOf(sealed, 'wh-2'))).toBeUndefined();
  });
});

import { describe, expect, inject, it } from 'vitest';
import { CorrectedClock } from '../../src/system/clock.ts';
import { realClock } from '../../src/system/real.ts';
import type { Answer, Api } from '../support/api.ts';
import { migratedDatabase } from '../support/database.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { waitingRun } from '../support/interrupts.ts';
import { onEachStore } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';
import { TransactionPooler } from '../support/transaction-pooler.ts';
import { until } from '../support/until.ts';

/** Who else has an item of the inbox open: short-lived, told at once, and seen by nobody who does not see the item. */

const INBOX = '/v1/host/capstan/inbox';
const VIEWERS = `${INBOX}/viewers`;

type Look = { kind: string; id: string; runId: string; createdAt: string };

/** A new item, as a window names it. */
async function newItem(by: Api): Promise<Look> {
  const { runId } = await waitingRun(by, 'conformance-approval');
  const { items } = (await by.get(`${INBOX}?limit=200`)).body;
  const { kind, id, createdAt } = items.find((item: Answer['body']) => item.runId === runId);
  return { kind, id, runId, createdAt };
}

const look = (api: Api, item: Look, viewId = 'window-1'): Promise<Answer> =>
  api.request('PUT', `${VIEWERS}/${viewId}`, item);
const namesAt = async (api: Api, { runId }: Look): Promise<string[]> => {
  const { status, body, text } = await api.get(VIEWERS);
  expect(status, text).toBe(200);
  return body.items
    .filter((viewer: Answer['body']) => viewer.runId === runId)
    .map(({ principal }: Answer['body']) => principal);
};

onEachStore('those who look at an item', (host) => {
  const [editor, reviewer] = [() => host().as('editor'), () => host().as('reviewer')];

  it('see each other, until one leaves', async () => {
    const item = await newItem(editor());
    const first = await look(editor(), item);
    expect(first.status, first.text).toBe(200);
    const { kind, id, runId } = item;
    expect(first.body).toEqual({
      items: [{ kind, id, runId, principal: 'editor-of-alpha', since: expect.any(String) }],
      expiresInMs: expect.any(Number),
    });
    expect((await look(reviewer(), item)).body.items).toHaveLength(2);
    expect(await namesAt(host().as('viewer'), item)).toEqual(['editor-of-alpha', 'reviewer-of-alpha']);
    const left = await reviewer().request('DELETE', `${VIEWERS}/window-1`);
    expect([left.status, left.text]).toEqual([204, '']);
    expect(await namesAt(editor(), item)).toEqual(['editor-of-alpha']);
    expect((await editor().request('DELETE', `${VIEWERS}/never-opened`)).status).toBe(204);
  });

  it('are told of in the feed when they come, move and go, and in no log of a run', async () => {
    const [item, other] = [await newItem(editor()), await newItem(editor())];
    const feed = await Stream.open(`${host().url}/v1/host/capstan/events`, KEYS.viewer.key);
    const told = (count: number) =>
      feed.until((frames) => frames.filter(({ event }) => event === 'inbox.viewers').length === count);
    await look(editor(), item, 'window-told');
    await told(1);
    await look(editor(), item, 'window-told');
    await look(editor(), other, 'window-told');
    await told(2);
    await editor().request('DELETE', `${VIEWERS}/window-told`);
    await told(3);
    feed.drop();
    const frame = feed.frames.find(({ event }) => event === 'inbox.viewers')!;
    expect(Object.keys(JSON.parse(frame.data!))).toEqual(['at']);
    const { text } = await editor().get(`/v1/runs/${item.runId}/events/poll?timeout=0`);
    expect(text).not.toContain('viewer');
  });

  it('is refused for what is not in the inbox', async () => {
    const item = await newItem(editor());
    const strange = { ...item, id: 'int-nobody-knows' };
    for (const wrong of [strange, { ...item, kind: 'goal' }, { ...item, runId: 'run-other' }]) {
      expectRefusal(await look(editor(), wrong), 404, 'not_found');
    }
    expectRefusal(await look(editor(), { ...item, createdAt: '2020-01-01T00:00:00Z' }), 404, 'not_found');
    // A leap second is a time by the standard, and no time that this host knows.
    expectRefusal(await look(editor(), { ...item, createdAt: '2016-12-31T23:59:60Z' }), 404, 'not_found');
    for (const wrong of [
      { ...item, createdAt: 'soon' },
      { ...item, kind: 'run' },
      { ...item, note: 'x' },
    ]) {
      expectRefusal(await look(editor(), wrong), 400, 'validation_error');
    }
    expectRefusal(await look(editor(), item, 'short'), 400, 'validation_error');
    expectRefusal(await host().as('nothing').get(VIEWERS), 403, 'forbidden');
    expectRefusal(await look(host().as('nothing'), item), 403, 'forbidden');
    expectRefusal(await host().anonymous.get(VIEWERS), 401, 'unauthenticated');
  });

  it('are strangers to other tenants, workspaces and test keys', async () => {
    const keepers = ['editor', 'workspace', 'other', 'test'] as const;
    const items = new Map<string, Look>();
    for (const who of keepers) items.set(who, await newItem(host().as(who)));
    for (const who of keepers) expect((await look(host().as(who), items.get(who)!)).status).toBe(200);
    const sees = async (who: (typeof keepers)[number]): Promise<string[]> => {
      const found = await Promise.all(keepers.map((keeper) => namesAt(host().as(who), items.get(keeper)!)));
      return keepers.filter((_, index) => found[index]!.length > 0);
    };
    expect(await sees('editor')).toEqual(['editor', 'workspace']);
    expect(await sees('workspace')).toEqual(['workspace']);
    expect(await sees('other')).toEqual(['other']);
    expect(await sees('test')).toEqual(['test']);
    for (const who of ['workspace', 'other', 'test'] as const) {
      expectRefusal(await look(host().as(who), items.get('editor')!), 404, 'not_found');
    }
  });

  it('are as many as a window for each of a few items, and no more', async () => {
    const item = await newItem(editor());
    const answers = await Promise.all(
      Array.from({ length: 104 }, (_, count) => look(host().as('owner'), item, `window-${count}`)),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(4);
    for (const answer of refused) expectRefusal(answer, 409, 'conflict');
    expect(await namesAt(editor(), item)).toEqual(['owner-of-alpha']);
  });
});

it('whoever falls silent is gone seconds later', async () => {
  const clock = new CorrectedClock(realClock);
  const host = await startTestHost('sqlite', undefined, {}, clock);
  try {
    const item = await newItem(host.as('editor'));
    const { body } = await look(host.as('reviewer'), item);
    expect(body.expiresInMs).toBeLessThanOrEqual(15_000);
    clock.offsetMs += body.expiresInMs;
    await until(
      () => namesAt(host.as('editor'), item),
      (names) => names.length === 0,
    );
  } finally {
    await host.stop();
  }
});

describe.each(['listening to each other', 'behind a pooler'] as const)('on two hosts, %s', (how) => {
  it('whoever looks is seen, and whoever leaves is gone, whichever host is told', async () => {
    const target = await migratedDatabase(inject('postgresUrl'));
    const pooler = how === 'behind a pooler' ? await TransactionPooler.open(target) : undefined;
    const one = await startTestHost('postgres', inject('postgresUrl'), { databaseUrl: pooler?.url ?? target });
    const two = await one.another();
    try {
      const item = await newItem(one.as('editor'));
      const feed = await Stream.open(`${two.url}/v1/host/capstan/events`, KEYS.viewer.key);
      await look(one.as('editor'), item);
      await feed.until((frames) => frames.some(({ event }) => event === 'inbox.viewers'));
      feed.drop();
      expect(await namesAt(two.as('reviewer'), item)).toEqual(['editor-of-alpha']);
      // A balancer sends the same window to the other host, and then its end to the first.
      expect((await look(two.as('editor'), item)).body.items).toHaveLength(1);
      await one.as('editor').request('DELETE', `${VIEWERS}/window-1`);
      for (const host of [one, two]) expect(await namesAt(host.as('reviewer'), item)).toEqual([]);
      await look(one.as('editor'), item, 'window-2');
      await one.stop();
      expect(await namesAt(two.as('reviewer'), item)).toEqual([]);
    } finally {
      await two.stop();
      await one.stop();
      await pooler?.close();
    }
  });
});

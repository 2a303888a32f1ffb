import pg from 'pg';
import { expect, inject, it } from 'vitest';
import type { Api, Frame } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, resolve, waits } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { onEachStore, STORES } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/** The feed of a tenant: everything that happens, in order, each thing once, whoever drops out and comes back. */

const PATH = '/v1/host/capstan/events';
const ONLY_RUNS = { key: 'only-runs-of-alpha', tenant: 'alpha', principal: 'only-runs', scopes: ['runs:read'] };

type Who = keyof typeof KEYS;
const open = ({ url }: TestHost, who: Who | { key: string }, lastId?: string): Promise<Stream> => {
  const { key } = typeof who === 'string' ? KEYS[who] : who;
  return Stream.open(url + PATH, key, lastId === undefined ? {} : { 'last-event-id': lastId });
};
const dataOf = ({ data }: Frame) => JSON.parse(data!);
const about = (frames: readonly Frame[], runId: string): Frame[] => frames.filter(({ data }) => data!.includes(runId));
const isOver = (runId: string) => (frames: readonly Frame[]) =>
  about(frames, runId).some((frame) => dataOf(frame).status === 'completed');

onEachStore(
  'the feed',
  (host) => {
    const api = (): Api => host().as('editor');

    it('tells of runs that begin and of their status, with ids and small facts', async () => {
      const feed = await open(host(), 'viewer');
      const runId = await api().run('conformance-noop');
      await feed.until(isOver(runId));
      feed.drop();
      const [created, status, ...rest] = about(feed.frames, runId);
      expect(rest).toEqual([]);
      expect([created!.event, status!.event]).toEqual(['run.created', 'run.status']);
      expect(dataOf(created!)).toEqual({
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        runId,
        workflowId: 'conformance-noop',
        status: 'running',
      });
      expect(dataOf(status!)).toMatchObject({ runId, workflowId: 'conformance-noop', status: 'completed' });
    });

    it('says why a run failed, and whose child a run is', async () => {
      const feed = await open(host(), 'viewer');
      const failed = await api().run('conformance-failure');
      const parent = await api().run('conformance-subworkflow-parent');
      const { childRuns } = await api().ended(parent);
      await feed.until((frames) => about(frames, failed).length === 2 && isOver(parent)(frames));
      feed.drop();
      const { error } = await api().ended(failed);
      expect(dataOf(about(feed.frames, failed)[1]!)).toMatchObject({ status: 'failed', errorCode: error.code });
      const child = feed.frames.map(dataOf).find(({ runId }) => runId === childRuns[0].runId);
      expect(child.parentRunId).toBe(parent);
    });

    it('tells when the inbox has changed', async () => {
      const feed = await open(host(), 'viewer');
      const runId = await api().run(await register(api(), workflow([approval('ask')])));
      await waits(api(), runId);
      await feed.until((frames) => frames.some(({ event }) => event === 'inbox.changed'));
      const statuses = about(feed.frames, runId).map((frame) => dataOf(frame).status);
      expect(statuses).toEqual(['running', 'waiting-approval']);
      await resolve(api(), runId, 'ask', { action: 'accept' });
      await feed.until((frames) => frames.filter(({ event }) => event === 'inbox.changed').length === 2);
      // What comes later would be seen by the readers of the next test, and not by all of them.
      await feed.until(isOver(runId));
      feed.drop();
    });

    it('begins with what happens from now on', async () => {
      const before = await api().run('conformance-noop');
      await api().ended(before);
      const feed = await open(host(), 'viewer');
      const runId = await api().run('conformance-noop');
      await feed.until(isOver(runId));
      feed.drop();
      expect(about(feed.frames, before)).toEqual([]);
    });

    it('goes on behind the entry that a reader has: nothing is lost, nothing comes twice', async () => {
      const whole = await open(host(), 'viewer');
      const parts: Frame[] = [];
      let part = await open(host(), 'viewer');
      let lastId: string | undefined;
      const runIds: string[] = [];
      for (let round = 0; round < 6; round++) {
        const started = await Promise.all(Array.from({ length: 5 }, () => api().run('conformance-noop')));
        runIds.push(...started);
        await part.until((frames) => frames.length > round);
        part.drop();
        parts.push(...part.frames);
        lastId = part.frames.at(-1)?.id ?? lastId;
        runIds.push(await api().run('conformance-noop'));
        part = await open(host(), 'viewer', lastId);
        expect(part.status).toBe(200);
      }
      const isAll = (frames: readonly Frame[]) =>
        runIds.every((runId) => about(frames, runId).length === 2) && isOver(runIds.at(-1)!)(frames);
      await part.until((frames) => isAll([...parts, ...frames]));
      await whole.until(isAll);
      for (const stream of [part, whole]) stream.drop();
      parts.push(...part.frames);
      expect(new Set(parts.map(({ id }) => id)).size).toBe(parts.length);
      expect(parts).toEqual(whole.frames);
    });

    it('says where it begins, for readers that are cut off before the first entry', async () => {
      const response = await fetch(host().url + PATH, { headers: { authorization: `Bearer ${KEYS.viewer.key}` } });
      const lastId = response.headers.get('last-event-id')!;
      await response.body!.cancel();
      const runId = await api().run('conformance-noop');
      await api().ended(runId);
      const feed = await open(host(), 'viewer', lastId);
      await feed.until(isOver(runId));
      feed.drop();
      expect(about(feed.frames, runId)).toHaveLength(2);
      const beyond = feed.frames.at(-1)!.id!.replace(/\d+$/, '999999');
      expectRefusal(await host().as('viewer').get(PATH, { 'last-event-id': beyond }), 400, 'validation_error');
    });

    it.each(['7', 'x', 'abc.1', 'abc.1.2', '.', `${'9'.repeat(80)}.1`])('refuses %s as a place', async (lastId) => {
      const answer = await host().as('viewer').get(PATH, { 'last-event-id': lastId });
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.body.details.field).toBe('Last-Event-ID');
    });

    it('shows a tenant nothing of another, and a workspace nothing of the rest', async () => {
      const [other, north] = [await open(host(), 'other'), await open(host(), 'workspace')];
      const mine = await api().run('conformance-noop');
      await api().ended(mine);
      const theirs = await host().as('other').run('conformance-noop');
      const inNorth = await host().as('workspace').run('conformance-noop');
      await other.until(isOver(theirs));
      await north.until(isOver(inNorth));
      for (const feed of [other, north]) feed.drop();
      expect(new Set(other.frames.map((frame) => dataOf(frame).runId))).toEqual(new Set([theirs]));
      expect(new Set(north.frames.map((frame) => dataOf(frame).runId))).toEqual(new Set([inNorth]));
    });

    it('shows judgements to those alone who may read them', async () => {
      const [may, mayNot] = [await open(host(), 'viewer'), await open(host(), ONLY_RUNS)];
      const runId = await api().run('conformance-noop');
      await api().ended(runId);
      const note = unique('note');
      await api().post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' }, note });
      const after = await api().run('conformance-noop');
      for (const feed of [may, mayNot]) {
        await feed.until(isOver(after));
        feed.drop();
      }
      const [annotated] = may.frames.filter(({ event }) => event === 'run.annotated');
      expect(dataOf(annotated!).annotation.note).toBe(note);
      expect(JSON.stringify(mayNot.frames)).not.toContain(note);
      expect(mayNot.frames.some(({ event }) => event === 'inbox.changed')).toBe(true);
    });
  },
  { apiKeys: keyRecords([ONLY_RUNS]) },
);

it.each(STORES)(
  'a feed keeps what happens while its readers are away and the host starts anew, on %s',
  async (kind) => {
    const folder = freshFolder();
    const first = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder.path });
    const feed = await open(first, 'viewer');
    const known = await first.as('editor').run('conformance-noop');
    await feed.until(isOver(known));
    const lastId = feed.frames.at(-1)!.id!;
    feed.drop();
    const missed = await first.as('editor').run('conformance-noop');
    await first.as('editor').ended(missed);
    await first.stop();
    const second = await first.another();
    const later = await second.as('editor').run('conformance-noop');
    const again = await open(second, 'viewer', lastId);
    await again.until(isOver(later));
    again.drop();
    await second.stop();
    folder.remove();
    expect(about(again.frames, known)).toEqual([]);
    expect(about(again.frames, missed)).toHaveLength(2);
    expect(about(again.frames, later)).toHaveLength(2);
  },
);

it('a feed does not wait for a transaction of somebody else that takes long', async () => {
  const host = await startTestHost('postgres', inject('postgresUrl'));
  const somebody = new pg.Client(host.config.databaseUrl);
  await somebody.connect();
  await somebody.query('BEGIN');
  await somebody.query('SELECT pg_current_xact_id()');
  const feed = await open(host, 'viewer');
  const runId = await host.as('editor').run('conformance-noop');
  await feed.until(isOver(runId));
  feed.drop();
  await somebody.end();
  await host.stop();
  expect(about(feed.frames, runId)).toHaveLength(2);
});

it('a feed tells on one host what happens on all of them, each thing once and in one order', async () => {
  const first = await startTestHost('postgres', inject('postgresUrl'));
  const hosts = [first, await first.another(), await first.another()];
  const feeds = await Promise.all(hosts.map((host) => open(host, 'viewer')));
  const start = (host: TestHost) =>
    Promise.all(Array.from({ length: 30 }, () => host.as('editor').run('conformance-noop')));
  const runIds = (await Promise.all(hosts.map(start))).flat();
  for (const feed of feeds) {
    await feed.until((frames) => frames.length >= 2 * runIds.length);
    feed.drop();
    const told = feed.frames.map((frame) => `${frame.event} ${dataOf(frame).runId}`);
    expect(new Set(told)).toEqual(new Set(runIds.flatMap((runId) => [`run.created ${runId}`, `run.status ${runId}`])));
    expect(feed.frames).toEqual(feeds[0]!.frames);
  }
  for (const host of hosts.reverse()) await host.stop();
});

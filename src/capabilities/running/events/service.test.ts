import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { line, node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { RunService } from '../runs/service.ts';
import { follow } from './follow.ts';
import { EventService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());

const { runtime, clock } = host;
const runs = new RunService(host, { models: [] });
const events = new EventService(runtime);
const ada = callerAs('ada');
const DELAY_MS = 60_000;
const delayed = workflow([node('a', 'core.delay', { config: { delayMs: DELAY_MS } }), node('b')], line('a', 'b'));
await registerShared(runtime, delayed);

/** A run that sleeps until the clock moves. */
async function sleepingRun(): Promise<RunRow> {
  const request = { workflowId: delayed.id, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(ada, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return (await events.row(ada, started.runId))!;
}

const forever = new AbortController().signal;
const sequencesOf = (batch: readonly StoredEvent[]): number[] => batch.map(({ sequence }) => sequence);

describe('following a run', () => {
  it('gives every event once, in order, and ends with the run', async () => {
    const row = await sleepingRun();
    const seen: number[] = [];
    for await (const batch of follow(runtime, row, { after: -1, signal: forever })) {
      if (seen.length === 0) clock.advance(DELAY_MS);
      seen.push(...sequencesOf(batch));
    }
    const last = (await events.row(ada, row.run_id))!;
    expect(last.status).toBe('completed');
    expect(seen).toEqual(Array.from({ length: last.sequence + 1 }, (_, sequence) => sequence));
  });

  it('ends when the reader disconnects', async () => {
    const row = await sleepingRun();
    const connection = new AbortController();
    const batches = follow(runtime, row, { after: row.sequence, signal: connection.signal });
    const next = batches.next();
    connection.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it('ends at once for a reader that starts after the last event of a run that has ended', async () => {
    const row = await sleepingRun();
    await perform(runtime, () => runs.cancel(ada, row.run_id));
    const ended = (await events.row(ada, row.run_id))!;
    const next = await follow(runtime, ended, { after: ended.sequence + 5, signal: forever }).next();
    expect(next.done).toBe(true);
  });
});

describe('following a run in turns', () => {
  it('gives in one batch what is appended until the turn comes', async () => {
    const row = await sleepingRun();
    const turn = Promise.withResolvers<void>();
    const batches = follow(runtime, row, {
      after: row.sequence,
      signal: forever,
      turn: (isToRead) => (isToRead ? Promise.resolve() : turn.promise),
    });
    const next = batches.next();
    await perform(runtime, () => runs.pause(ada, row.run_id, { drainPolicy: 'drain-current-node' }));
    await perform(runtime, () => runs.cancel(ada, row.run_id));
    turn.resolve();
    const { value } = await next;
    const last = (await events.row(ada, row.run_id))!;
    expect(sequencesOf(value!).at(-1)).toBe(last.sequence);
    expect((await batches.next()).done).toBe(true);
  });
});

describe('following a run without waiting', () => {
  it('tells when something was appended, which can be taken then, and that the end has come', async () => {
    const row = await sleepingRun();
    const batches = follow(runtime, row, { after: row.sequence, signal: forever });
    expect(batches.takeNow(), 'the log has to be read first').toBe(undefined);
    const first = batches.next();
    await perform(runtime, () => runs.pause(ada, row.run_id, { drainPolicy: 'drain-current-node' }));
    const given = sequencesOf((await first).value!);
    const tell = vi.fn();
    batches.whenMore(tell);
    expect(tell).not.toHaveBeenCalled();
    await perform(runtime, () => runs.cancel(ada, row.run_id));
    expect(tell).toHaveBeenCalledOnce();
    const taken = sequencesOf(batches.takeNow()!);
    expect(taken[0]).toBe(given.at(-1)! + 1);
    expect(taken.at(-1)).toBe((await events.row(ada, row.run_id))!.sequence);
    batches.whenMore(tell);
    expect(tell, 'of the end').toHaveBeenCalledTimes(2);
    expect(batches.takeNow()).toBe(undefined);
    expect((await batches.next()).done).toBe(true);
  });

  it('leaves a gap in what was appended to the log', async () => {
    const row = await sleepingRun();
    const batches = follow(runtime, row, { after: row.sequence, signal: forever });
    const first = batches.next();
    await perform(runtime, () => runs.pause(ada, row.run_id, { drainPolicy: 'drain-current-node' }));
    await first;
    runtime.hub.publish(row.run_id);
    expect(batches.takeNow(), 'another host has appended').toBe(undefined);
    batches.close();
  });

  it('tells of notices, which come with an empty batch', async () => {
    const row = await sleepingRun();
    const batches = follow(runtime, row, { after: row.sequence, signal: forever, notices: true });
    const first = batches.next();
    await perform(runtime, () => runs.pause(ada, row.run_id, { drainPolicy: 'drain-current-node' }));
    await first;
    const tell = vi.fn();
    batches.whenMore(tell);
    runtime.hub.publishNotice(row.run_id, { event: 'run.annotated', data: '{}' });
    expect(tell).toHaveBeenCalledOnce();
    expect(batches.takeNow()).toEqual([]);
    expect(batches.takeNotices()).toHaveLength(1);
    batches.close();
  });
});

describe('notices', () => {
  const notice = { event: 'run.annotated', data: '{}' };

  it('come with an empty batch, to readers that want them', async () => {
    const row = await sleepingRun();
    const batches = follow(runtime, row, { after: row.sequence, signal: forever, notices: true });
    const next = batches.next();
    await Promise.resolve();
    runtime.hub.publishNotice(row.run_id, notice);
    expect(await next).toEqual({ done: false, value: [] });
    expect(batches.takeNotices()).toEqual([notice]);
    expect(batches.takeNotices()).toEqual([]);
    batches.close();
    expect(runtime.hub.hasNoticeListeners(row.run_id)).toBe(false);
  });

  it('wait for a slow reader in limited number', async () => {
    const row = await sleepingRun();
    const batches = follow(runtime, row, { after: row.sequence, signal: forever, notices: true });
    for (let count = 0; count < 2_000; count++) runtime.hub.publishNotice(row.run_id, notice);
    await batches.next();
    expect(batches.takeNotices()).toHaveLength(1_000);
    batches.close();
  });
});

it('closing ends the wait of whoever follows', async () => {
  const row = await sleepingRun();
  const batches = follow(runtime, row, { after: row.sequence, signal: forever });
  const next = batches.next();
  await new Promise((resolve) => clock.soon(() => resolve(undefined)));
  batches.close();
  expect(await next).toEqual({ done: true, value: undefined });
});

const waiting = { waitMs: 1_000, signal: forever };

describe('polling', () => {
  it('returns at once what is new', async () => {
    const row = await sleepingRun();
    const polled = await events.poll(ada.subject, row.run_id, 0, waiting);
    expect(polled?.events[0]?.sequence).toBe(1);
    expect(polled).toMatchObject({ status: row.status, sequence: row.sequence });
  });

  it('asks the store once, also when there is nothing new', async () => {
    const row = await sleepingRun();
    const read = vi.spyOn(runtime.store, 'read');
    onTestFinished(() => read.mockRestore());
    // The executor reads as well, when the clock advances.
    const readsOfRun = () => read.mock.calls.filter(([{ params }]) => params?.includes(row.run_id)).length;
    await events.poll(ada.subject, row.run_id, 0, waiting);
    expect(readsOfRun()).toBe(1);
    const polling = events.poll(ada.subject, row.run_id, row.sequence, waiting);
    await new Promise((resolve) => clock.soon(() => resolve(undefined)));
    clock.advance(1_000);
    await polling;
    expect(readsOfRun()).toBe(2);
  });

  it('tells nobody of a run that is not for them', async () => {
    const row = await sleepingRun();
    expect(await events.poll({ tenant: 'another' }, row.run_id, 0, waiting)).toBeUndefined();
  });

  it('returns nothing when the time is up', async () => {
    const row = await sleepingRun();
    const polling = events.poll(ada.subject, row.run_id, row.sequence, waiting);
    await new Promise((resolve) => clock.soon(() => resolve(undefined)));
    clock.advance(1_000);
    expect(await polling).toMatchObject({ events: [], status: row.status });
  });

  it('says that the last events are the last', async () => {
    const row = await sleepingRun();
    await perform(runtime, () => runs.cancel(ada, row.run_id));
    const polled = await events.poll(ada.subject, row.run_id, row.sequence, waiting);
    expect(polled).toMatchObject({ status: 'cancelled', sequence: polled?.events.at(-1)?.sequence });
  });
});

it('the document of a log holds all of its events', async () => {
  const row = await sleepingRun();
  const pieces: string[] = [];
  for await (const piece of events.document(row)) pieces.push(piece);
  const document = JSON.parse(pieces.join('')) as { events: { sequence: number }[] };
  expect(document.events.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: row.sequence + 1 }, (_, sequence) => sequence),
  );
});

import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import type { Caller } from '../../request.ts';
import type { FeedFact } from './door.ts';
import { FEED_TABLES } from './records.ts';
import { eventIdOf, type FeedPosition } from './rules.ts';
import { FeedService } from './service.ts';

const host = await openCapabilityHost({ tables: FEED_TABLES });
afterAll(() => host.close());

const feed = new FeedService(host.runtime);
const callerIn = (tenant: string, role: 'owner' | 'viewer' = 'owner'): Caller => {
  const caller = callerAs('ada', role);
  return { ...caller, subject: { ...caller.subject, tenant } };
};
const fact = (runId: string): FeedFact => ({ event: 'run.status', data: { runId } });
const publish = (tenant: string, ...facts: FeedFact[]) =>
  perform(host.runtime, async () => feed.publish({ tenant }, facts));
const open = async (caller: Caller, lastEventId?: string): Promise<FeedPosition> => {
  const position = await feed.open(caller, lastEventId);
  if (isRefusal(position)) throw new Error(position.message);
  return position;
};
/** The next frames of a reader; the reader stays connected. */
const read = async (caller: Caller, from: FeedPosition): Promise<string> => {
  const { value } = await feed.follow(caller, from, new AbortController().signal).next();
  return value ?? '';
};

it('stores entries only for tenants whose feed somebody reads', async () => {
  expect(feed.publish({ tenant: 'unread' }, [fact('run-1')]).writes).toEqual([]);
  await open(callerIn('read'));
  expect(feed.publish({ tenant: 'read' }, [fact('run-1')]).writes).toHaveLength(1);
});

it('sends what is published after a reader came, in order, and nothing twice after a reconnect', async () => {
  const caller = callerIn('alpha');
  const start = await open(caller);
  await publish('alpha', fact('run-1'), fact('run-2'));
  const frames = await read(caller, start);
  expect(frames.match(/run-\d/g)).toEqual(['run-1', 'run-2']);
  const [lastId] = frames.match(/(?<=id: ).*/g)!.slice(-1);
  await publish('alpha', fact('run-3'));
  expect((await read(caller, await open(caller, lastId))).match(/run-\d/g)).toEqual(['run-3']);
});

it('wakes a reader that waits', async () => {
  const caller = callerIn('beta');
  const frames = read(caller, await open(caller));
  await new Promise((resolve) => setImmediate(resolve));
  host.clock.advance(50);
  await publish('beta', fact('run-1'));
  for (let turn = 0; turn < 10; turn++) {
    host.clock.advance(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await frames).toContain('run-1');
});

it('hides entries from callers without the scope', async () => {
  const [owner, nobody] = [callerIn('gamma'), { ...callerIn('gamma'), scopes: new Set<never>() }];
  const start = await open(owner);
  await publish('gamma', { event: 'goal.updated', data: { goalId: 'goal-1' } }, fact('run-1'));
  expect(await read(owner, start)).toContain('goal-1');
  expect(await read(nobody, start)).not.toContain('goal-1');
});

it('refuses positions of other feeds, and text that is none', async () => {
  const caller = callerIn('delta');
  const { number } = await open(caller);
  const others = eventIdOf({ feedId: 'other', number });
  for (const lastEventId of [others, 'nonsense']) {
    expect(await feed.open(caller, lastEventId)).toMatchObject({
      refused: 'validation_error',
      details: { field: 'Last-Event-ID' },
    });
  }
});

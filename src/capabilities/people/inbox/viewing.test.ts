import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callerAs } from '../../../../test/support/capability-host.ts';
import { openServiceHost, type ServiceHost } from '../../../../test/support/service-host.ts';
import type { InboxPresence } from '../../../protocol/people/inbox.ts';
import { changeOf, perform } from '../../../runtime/change.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Caller } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import type { InboxEntry } from './door.ts';
import { InboxViewing } from './viewing.ts';
import { INBOX_TABLES } from './viewing-records.ts';
import { STORE_VIEW_EVERY_MS, STORED_VIEW_MS, VIEW_LIMITS, VIEW_MS } from './viewing-rules.ts';

const entry = (id: string, more: Partial<InboxEntry> = {}): InboxEntry => ({
  kind: 'interrupt',
  id,
  title: id,
  createdAt: 0,
  workspace: null,
  link: '/',
  runId: `run-of-${id}`,
  ...more,
});
const { runId: _, ...GOAL } = entry('stopped', { kind: 'goal' });
const ENTRIES: readonly InboxEntry[] = [
  entry('one'),
  entry('two'),
  entry('northern', { workspace: 'north' }),
  entry('draft', { kind: 'proposal' }),
  GOAL,
];

const [ana, bob] = [callerAs('ana'), callerAs('bob')];
const north: Caller = { ...bob, subject: { ...bob.subject, principal: 'nora', workspace: 'north' } };
const stranger: Caller = { ...bob, subject: { ...bob.subject, tenant: 'beta' } };

describe.each([
  ['a store of its own', false],
  ['a shared store', true],
] as const)('who looks at items, on %s', (_store, isShared) => {
  let service: ServiceHost;
  let told: Visibility[];
  let written: Unit[];
  let hosts: InboxViewing[];
  beforeEach(async () => {
    written = [];
    service = await openServiceHost({ tables: INBOX_TABLES, beforeCommit: async (unit) => void written.push(unit) });
    told = [];
    hosts = Array.from({ length: isShared ? 2 : 1 }, () => viewing());
  });
  afterEach(() => service.close());

  const runtime = () => ({ ...service.host.runtime, store: shared() });
  const shared = () =>
    new Proxy(service.store, { get: (store, name) => (name === 'isShared' ? isShared : of(store, name)) });
  const of = (store: object, name: string | symbol): unknown => Reflect.get(store, name, store);
  const viewing = () =>
    new InboxViewing(runtime(), {
      inbox: { find: async (_caller, { kind, id }) => ENTRIES.find((each) => each.kind === kind && each.id === id) },
      feed: { publish: (scope) => changeOf(undefined, [], { announce: [() => void told.push(scope)] }) },
    });
  /** The host that a request reaches: the last one, so that two of them have to agree. */
  const last = () => hosts.at(-1)!;

  async function look(caller: Caller, id: string, viewId = 'window-1', at = hosts[0]!) {
    const { kind } = ENTRIES.find((each) => each.id === id) ?? entry(id);
    return perform(service.host.runtime, () => at.look(caller, viewId, { kind, id, createdAt: timestamp(0) }));
  }
  const leave = (caller: Caller, viewId = 'window-1', at = hosts[0]!) =>
    perform(service.host.runtime, () => at.leave(caller, viewId));
  const seenBy = async (caller: Caller, at = last()): Promise<string[]> =>
    (await at.list(caller)).map(({ principal, id }) => `${principal}: ${id}`);
  /** Lets the time pass, and then what a timer began. */
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1_000) {
      service.clock.advance(Math.min(1_000, left));
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  it('is seen by others, until shortly after it was said last', async () => {
    await look(ana, 'one');
    expect(await look(bob, 'one', 'window-2')).toMatchObject({
      items: [{ principal: 'ana' }, { principal: 'bob', kind: 'interrupt', id: 'one', runId: 'run-of-one' }],
      expiresInMs: VIEW_MS,
    });
    expect(await seenBy(bob)).toEqual(['ana: one', 'bob: one']);
    await pass(VIEW_MS - 1_000);
    await look(ana, 'one');
    await pass(2_000);
    expect(await seenBy(bob)).toEqual(['ana: one']);
    await pass(VIEW_MS);
    expect(await seenBy(bob)).toEqual([]);
  });

  it('is told when somebody comes, moves or goes, and nothing is written in between', async () => {
    await look(ana, 'one');
    expect(told).toHaveLength(1);
    written.length = 0;
    for (let beats = 0; beats < 5; beats++) {
      await pass(4_000);
      await look(ana, 'one');
    }
    expect([told.length, written.flat()]).toEqual([1, []]);
    await look(ana, 'northern');
    expect(told.slice(1)).toEqual([
      { tenant: 'alpha', workspace: undefined },
      { tenant: 'alpha', workspace: 'north' },
    ]);
    expect(await seenBy(bob)).toEqual(['ana: northern']);
    await leave(ana);
    await leave(ana);
    expect(told).toHaveLength(4);
    expect(await seenBy(bob)).toEqual([]);
  });

  it('shows each person once, for as long as one of their windows is open', async () => {
    await look(ana, 'one', 'window-1');
    await look(ana, 'one', 'window-2');
    expect(await seenBy(bob)).toEqual(['ana: one']);
    await leave(ana, 'window-1');
    expect(await seenBy(bob)).toEqual(['ana: one']);
    await leave(ana, 'window-2');
    expect(await seenBy(bob)).toEqual([]);
  });

  it('is for those who see the item in their own inbox', async () => {
    for (const id of ['one', 'northern', 'draft', 'stopped']) {
      await look(ana, id, `window-${id}`);
      service.clock.advance(1);
    }
    expect(await seenBy(bob)).toEqual(['ana: one', 'ana: northern', 'ana: draft', 'ana: stopped']);
    expect(await seenBy(north)).toEqual(['ana: northern']);
    expect(await seenBy(stranger)).toEqual([]);
    const unscoped = new Set([...bob.scopes].filter((scope) => scope !== 'proposals:read'));
    expect(await seenBy({ ...bob, scopes: unscoped })).not.toContain('ana: draft');
  });

  it("ends nobody else's view, and is refused for what does not wait", async () => {
    await look(ana, 'one');
    await leave(bob);
    await leave(stranger);
    expect(await seenBy(bob)).toEqual(['ana: one']);
    expect(await look(ana, 'gone')).toMatchObject({ refused: 'not_found' });
  });

  it('is limited for each person and each item', async () => {
    for (let count = 0; count < VIEW_LIMITS.ofPrincipal; count++) await look(ana, 'two', `window-${count}`);
    expect(await look(ana, 'one', 'one-more')).toMatchObject({
      refused: 'conflict',
      details: { what: 'ofPrincipal', limit: VIEW_LIMITS.ofPrincipal },
    });
    // One that is open already may go on, and elsewhere.
    expect(await look(ana, 'one', 'window-0')).toMatchObject({ items: [{ principal: 'ana' }] });
    const crowd = Array.from({ length: VIEW_LIMITS.ofItem }, (_, index) => callerAs(`person-${index}`));
    const answers = await Promise.all(crowd.map((caller) => look(caller, 'one')));
    expect(answers.filter((answer) => 'refused' in answer)).toHaveLength(1);
    expect(((await look(ana, 'one', 'window-0')) as InboxPresence).items).toHaveLength(VIEW_LIMITS.ofItem);
  });

  it('is over when the host stops', async () => {
    await look(ana, 'one');
    await hosts[0]!.stop();
    expect(await seenBy(bob)).toEqual([]);
  });

  if (!isShared) return;

  it('holds whichever host receives it, and the latest counts', async () => {
    await look(ana, 'one', 'window-1', hosts[0]);
    service.clock.advance(1);
    await look(ana, 'two', 'window-1', hosts[1]);
    for (const host of hosts) expect(await seenBy(bob, host)).toEqual(['ana: two']);
    await pass(VIEW_MS - 2_000);
    await look(ana, 'two', 'window-1', hosts[1]);
    await pass(4_000);
    for (const host of hosts) expect(await seenBy(bob, host)).toEqual(['ana: two']);
    await leave(ana, 'window-1', hosts[0]);
    for (const host of hosts) expect(await seenBy(bob, host)).toEqual([]);
  });

  it('is stored seldom, and does not last for long when its host dies', async () => {
    await look(ana, 'one');
    written.length = 0;
    for (let ms = 0; ms < STORE_VIEW_EVERY_MS; ms += 5_000) {
      await pass(5_000);
      await look(ana, 'one');
    }
    expect(written).toHaveLength(1);
    service.clock.advance(STORED_VIEW_MS + 1);
    expect(await seenBy(bob)).toEqual([]);
  });
});

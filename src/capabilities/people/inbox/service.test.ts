import { expect, it } from 'vitest';
import type { Caller } from '../../request.ts';
import { type InboxEntry, type InboxPlace, type InboxSource, InboxSources } from './door.ts';
import { placeOf } from './rules.ts';
import { InboxService } from './service.ts';

const item = (id: string, createdAt: number, runId = 'run'): InboxEntry => ({
  kind: 'interrupt',
  id,
  title: id,
  createdAt,
  workspace: null,
  link: '/',
  runId,
});

/** A source as its interface asks for: newest first, before a position, at most as many as the limit. */
function sourceOf(...items: InboxEntry[]): InboxSource {
  return { kinds: items.map(({ kind }) => kind), list: listOf(items) };
}

function listOf(items: InboxEntry[]): InboxSource['list'] {
  const rank = ({ at, id, runId }: InboxPlace): string => `${String(at).padStart(9, '0')} ${id} ${runId}`;
  return async (_caller, before, limit) =>
    items
      .toSorted((a, b) => (rank(placeOf(a)) < rank(placeOf(b)) ? 1 : -1))
      .filter((each) => !before || rank(placeOf(each)) < rank(before))
      .slice(0, limit);
}

const nobody = { scopes: new Set<string>() } as unknown as Caller;

function inboxOf(...sources: InboxSource[]): InboxService {
  return new InboxService(
    { extensions: (point) => point.among([InboxSources.of(...sources)]) },
    { read: async () => [] },
  );
}

it('merges the entries of all sources, newest first, ties by id', async () => {
  const inbox = inboxOf(sourceOf(item('a', 10), item('b', 30), item('c', 30)), sourceOf(item('d', 20), item('bb', 30)));
  expect((await inbox.list(nobody, undefined, 10)).map(({ id }) => id)).toEqual(['c', 'bb', 'b', 'd', 'a']);
});

it('lists every entry on exactly one page, whichever source it comes from', async () => {
  const items = Array.from({ length: 23 }, (_, index) => item(`i${index % 9}`, index % 5, `run-${index}`));
  const inbox = inboxOf(
    sourceOf(...items.filter((_, index) => index % 3 === 0)),
    sourceOf(...items.filter((_, index) => index % 3 !== 0)),
  );
  const whole = await inbox.list(nobody, undefined, 100);
  const paged: InboxEntry[] = [];
  for (let page = await inbox.list(nobody, undefined, 4); page.length > 0; ) {
    paged.push(...page);
    const last = page.at(-1)!;
    page = await inbox.list(nobody, placeOf(last), 4);
  }
  expect(whole).toHaveLength(23);
  expect(paged).toEqual(whole);
});

it('has the entries of a source only for callers with the scope of the source', async () => {
  const goals: InboxSource = { ...sourceOf(item('goal', 20)), scope: 'goals:read' };
  const inbox = inboxOf(sourceOf(item('gate', 10)), goals);
  const idsFor = async (...scopes: string[]) =>
    (await inbox.list({ scopes: new Set(scopes) } as unknown as Caller, undefined, 10)).map(({ id }) => id);
  expect(await idsFor('runs:read')).toEqual(['gate']);
  expect(await idsFor('runs:read', 'goals:read')).toEqual(['goal', 'gate']);
});

it('finds an item without asking sources that have no items of its kind', async () => {
  const asked: string[] = [];
  const watched = (name: string, source: InboxSource): InboxSource => ({
    ...source,
    list: (...request) => {
      asked.push(name);
      return source.list(...request);
    },
  });
  const goal: InboxEntry = { ...item('b', 20), kind: 'goal' };
  const inbox = inboxOf(watched('interrupts', sourceOf(item('a', 20))), watched('goals', sourceOf(goal)));
  const found = await inbox.find(nobody, {
    kind: 'goal',
    id: 'b',
    createdAt: new Date(20).toISOString(),
  });
  expect(found).toEqual(goal);
  expect(asked).toEqual(['goals']);
});

import { expect, it } from 'vitest';
import type { Caller } from '../capability.ts';
import { type InboxItem, type InboxSource, inboxService } from './service.ts';

const item = (id: string, createdAt: number): InboxItem => ({ kind: 'interrupt', id, title: id, createdAt, link: '/' });

/** A source that keeps its promise: newest first, from before a place, no more than asked for. */
function sourceOf(...items: InboxItem[]): InboxSource {
  const isNewerFirst = (a: InboxItem, b: InboxItem): number => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
  return async (_caller, before, limit) =>
    items
      .toSorted(isNewerFirst)
      .filter(({ createdAt, id }) => !before || createdAt < before.at || (createdAt === before.at && id < before.id))
      .slice(0, limit);
}

const nobody = {} as Caller;

it('what several families have waiting is one list, newest first, ties by id', async () => {
  const { list } = inboxService([
    sourceOf(item('a', 10), item('b', 30), item('c', 30)),
    sourceOf(item('d', 20), item('bb', 30)),
  ]);
  expect((await list(nobody, undefined, 10)).map(({ id }) => id)).toEqual(['c', 'bb', 'b', 'd', 'a']);
});

it('pages join without gaps or doubles, whatever source an item comes from', async () => {
  const items = Array.from({ length: 23 }, (_, index) => item(`i${index}`, index % 5));
  const { list } = inboxService([
    sourceOf(...items.filter((_, index) => index % 3 === 0)),
    sourceOf(...items.filter((_, index) => index % 3 !== 0)),
  ]);
  const whole = await list(nobody, undefined, 100);
  const paged: InboxItem[] = [];
  for (let page = await list(nobody, undefined, 4); page.length > 0; ) {
    paged.push(...page);
    const last = page.at(-1)!;
    page = await list(nobody, { at: last.createdAt, id: last.id }, 4);
  }
  expect(whole).toHaveLength(23);
  expect(paged).toEqual(whole);
});

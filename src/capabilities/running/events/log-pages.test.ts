import { expect, it } from 'vitest';
import type { StoredEvent } from '../../../store/log.ts';
import { LogPages } from './log-pages.ts';

const EVENTS_MAX = 50;

/** Reads a log whose events have these lengths, page by page, and takes down what is asked and given. */
async function readAll(lengths: readonly number[]) {
  const asked: number[] = [];
  const events = async (after: number, limit: number): Promise<StoredEvent[]> => {
    asked.push(limit);
    const bodies = lengths.map((length, sequence) => ({ sequence, type: 'log.appended', body: 'x'.repeat(length) }));
    return bodies.slice(after + 1, after + 1 + limit) as StoredEvent[];
  };
  const pages = new LogPages(events, EVENTS_MAX);
  const given: number[][] = [];
  for (let after = -1, isMore = true; isMore; ) {
    const page = await pages.after(after);
    given.push(page.events.map(({ sequence }) => sequence));
    after = page.events.at(-1)?.sequence ?? after;
    isMore = page.isFull;
  }
  return { asked, given };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

it('short events come many at a time', async () => {
  const { given } = await readAll(new Array(120).fill(400));
  expect(given.map(({ length }) => length)).toEqual([5, 50, 50, 15]);
  expect(given.flat()).toEqual(upTo(120));
});

it('long events come one at a time, and no more of them are read than are given', async () => {
  const { given, asked } = await readAll(new Array(10).fill(100_000));
  expect(given.flat()).toEqual(upTo(10));
  expect(given.every(({ length }) => length <= 1)).toBe(true);
  expect(asked.slice(1).every((limit) => limit === 1)).toBe(true);
});

it('none is left out where long and short ones alternate', async () => {
  const { given } = await readAll(upTo(300).map((index) => (index % 3 === 0 ? 60_000 : 10)));
  expect(given.flat()).toEqual(upTo(300));
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../protocol/errors.ts';
import { numberAndIdIn, numberIn, pageFrom, pageOf, pageRequest, readPage } from './page.ts';

interface Row {
  readonly id: number;
  readonly text: string;
}
type Answer = { readonly items: readonly Row[]; readonly nextCursor?: string };

function requestOf(limit: number, cursor?: string) {
  const request = pageRequest({ limit: String(limit), ...(cursor === undefined ? {} : { cursor }) });
  if (isRefusal(request)) throw new Error(request.message);
  return request;
}

const show = (row: Row): Row => row;
const positionOf = ({ id }: Row): string => String(id);
const rowsOf = (sizes: readonly number[]): Row[] => sizes.map((size, id) => ({ id, text: 'x'.repeat(size) }));

/** A table of rows that counts what is read of it. */
function tableOf(rows: readonly Row[]) {
  const reads: number[] = [];
  return {
    reads,
    async read(after: string | undefined, limit: number): Promise<Row[]> {
      const start = after === undefined ? 0 : Number(after) + 1;
      const found = rows.slice(start, start + limit);
      reads.push(found.length);
      return found;
    },
  };
}

async function allPages(page: (cursor: string | undefined) => Promise<Answer>): Promise<Answer[]> {
  const pages = [await page(undefined)];
  while (pages.at(-1)!.nextCursor !== undefined) pages.push(await page(pages.at(-1)!.nextCursor));
  return pages;
}

describe.each<[string, (rows: readonly Row[], limit: number, cursor?: string) => Promise<Answer>]>([
  [
    'readPage',
    (rows, limit, cursor) => readPage(requestOf(limit, cursor), { read: tableOf(rows).read, show, positionOf }),
  ],
  [
    'pageOf',
    async (rows, limit, cursor) => {
      const request = requestOf(limit, cursor);
      return pageOf(await tableOf(rows).read(request.after, limit + 1), request, show, positionOf);
    },
  ],
])('the pages of a list by %s', (_name, pageAt) => {
  it('have every item once, and no more of them than wanted, whatever their sizes', async () => {
    const sizes = fc.array(fc.constantFrom(1, 10, 500_000, 3_000_000), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 40 }), async (lengths, limit) => {
        const pages = await allPages((cursor) => pageAt(rowsOf(lengths), limit, cursor));
        expect(pages.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(lengths.map((_, id) => id));
        expect(pages.every(({ items }) => items.length <= limit)).toBe(true);
        expect(pages.length === 1 || pages.every(({ items }) => items.length > 0)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it('end before they are larger than four megabytes and one item', async () => {
    const pages = await allPages((cursor) => pageAt(rowsOf(Array(20).fill(900_000)), 200, cursor));
    expect(pages.map(({ items }) => items.length)).toEqual([5, 5, 5, 5]);
  });

  it('are one if the items are small', async () => {
    const rows = rowsOf(Array(200).fill(100));
    expect(await pageAt(rows, 200)).toEqual({ items: rows });
  });
});

describe('a list of large rows', () => {
  it('is read from positions, which are parsed in one place', async () => {
    const read: (number | undefined)[] = [];
    const rows = rowsOf(Array(25).fill(1));
    const page = pageFrom({ limit: '25', cursor: cursorOf('0') }, numberIn);
    if (isRefusal(page)) throw new Error(page.message);
    const found = await readPage(page, {
      read: async (after, limit) => {
        read.push(after);
        return rows.slice(after! + 1).slice(0, limit);
      },
      show: positionOf,
      positionOf,
    });
    expect(read).toEqual([0, 10, 20]);
    expect(found.items).toHaveLength(24);
  });

  it('is read a few rows at a time, and no further than the page goes', async () => {
    const table = tableOf(rowsOf(Array(200).fill(900_000)));
    await readPage(requestOf(200), { read: table.read, show, positionOf });
    expect(table.reads).toEqual([11]);
  });

  it('has pages as large as what was read for them, though less is shown', async () => {
    const table = tableOf(rowsOf(Array(200).fill(900_000)));
    const shown = { read: table.read, show: positionOf, positionOf };
    expect((await readPage(requestOf(200), { ...shown, sourceOf: show })).items).toHaveLength(5);
    expect((await readPage(requestOf(200), shown)).items).toHaveLength(200);
  });
});

it('a cursor of another list is refused, with what to do instead', () => {
  const message = 'The cursor was not issued by this list. Leave it out to start at the beginning.';
  const refusal = { refused: 'validation_error', message, details: { field: 'cursor' } };
  expect(pageRequest({ cursor: 'not-base64!' })).toEqual(refusal);
  expect(pageFrom({ cursor: cursorOf('an-id') }, numberIn)).toEqual(refusal);
});

const cursorOf = (position: string): string => Buffer.from(position).toString('base64url');

describe('a page of a list that is sorted by numbers', () => {
  it('begins where the one before ended', () => {
    const first = pageOf([7, 5, 3], { limit: 2 }, String, String);
    expect(first.items).toEqual(['7', '5']);
    expect(pageFrom({ cursor: first.nextCursor! }, numberIn)).toMatchObject({ after: 5 });
    expect(pageFrom({ cursor: cursorOf('12.a.b') }, numberAndIdIn)).toMatchObject({ after: { number: 12, id: 'a.b' } });
    expect(pageFrom({}, numberIn)).toEqual({ limit: 50, placeIn: numberIn });
  });

  it.each(['x', '-1', '1.5', 'Infinity', '9223372036854775808', '9'.repeat(300)])(
    'cannot begin at %s, which no database could compare',
    (position) => {
      expect(isRefusal(pageFrom({ cursor: cursorOf(position) }, numberIn))).toBe(true);
      expect(isRefusal(pageFrom({ cursor: cursorOf(`${position}.x`) }, numberAndIdIn))).toBe(position !== '1.5');
    },
  );
});

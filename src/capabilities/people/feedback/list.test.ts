import { describe, expect, it } from 'vitest';
import { listText } from './list.ts';

const listed = (id: string, kind: 'rating' | 'flag', author = 'principal:ada', target = '[null,null]') => ({
  annotation_id: id,
  kind,
  author,
  target,
  body: JSON.stringify({ annotationId: id }),
});

async function textOf(...pages: ReturnType<typeof listed>[][]): Promise<string> {
  const all = (async function* () {
    yield* pages;
  })();
  return (await Array.fromAsync(listText(all))).join('');
}

describe('the list of annotations', () => {
  it('is JSON, however many pages it has', async () => {
    expect(await textOf()).toBe('{"annotations":[]}');
    const one = [listed('a', 'flag')];
    const two = [listed('b', 'flag'), listed('c', 'rating')];
    for (const pages of [[one], [one, two], [two, one, [listed('d', 'flag')]]]) {
      const ids = pages.flat().map(({ annotation_id }) => ({ annotationId: annotation_id }));
      expect(JSON.parse(await textOf(...pages))).toEqual({ annotations: ids });
    }
  });

  it('says which ratings were replaced, also across pages', async () => {
    const text = await textOf(
      [listed('a', 'rating'), listed('b', 'flag'), listed('c', 'flag')],
      [listed('d', 'rating'), listed('e', 'rating', 'principal:bo'), listed('f', 'rating', 'principal:ada', 'node')],
      [listed('g', 'rating')],
    );
    expect(JSON.parse(text).superseded).toEqual(['a', 'd']);
  });
});

import type { AnnotationRow } from './records.ts';

type Listed = Pick<AnnotationRow, 'annotation_id' | 'author' | 'target' | 'kind' | 'body'>;

/** The list of a run's annotations as one JSON text, in pieces. */
export async function* listText(pages: AsyncIterable<readonly Listed[]>): AsyncGenerator<string> {
  const ratings = new Ratings();
  let separator = '';
  yield '{"annotations":[';
  for await (const page of pages) {
    ratings.add(page);
    yield separator + page.map(({ body }) => body).join(',');
    separator = ',';
  }
  yield ratings.superseded.length === 0 ? ']}' : `],"superseded":${JSON.stringify(ratings.superseded)}}`;
}

/** Nothing is ever changed: who thinks better of a rating gives another on the same target, and that one counts. */
class Ratings {
  readonly superseded: string[] = [];
  readonly #latest = new Map<string, string>();

  add(annotations: readonly Listed[]): void {
    for (const { annotation_id, author, target, kind } of annotations) {
      if (kind !== 'rating') continue;
      const key = JSON.stringify([author, target]);
      const earlier = this.#latest.get(key);
      if (earlier !== undefined) this.superseded.push(earlier);
      this.#latest.set(key, annotation_id);
    }
  }
}

import type { ListedAnnotationRow } from './records.ts';

type Listed = Omit<ListedAnnotationRow, 'created_at'>;

/** The list of a run's annotations as one JSON document, in pieces. */
export async function* listText(pages: AsyncIterable<readonly Listed[]>): AsyncGenerator<string> {
  const superseded = new SupersededRatings();
  let separator = '';
  yield '{"annotations":[';
  for await (const page of pages) {
    superseded.add(page);
    yield separator + page.map(({ body }) => body).join(',');
    separator = ',';
  }
  yield superseded.ids.length === 0 ? ']}' : `],"superseded":${JSON.stringify(superseded.ids)}}`;
}

/** Finds ratings that were replaced: of several by one author on one target, the latest counts. */
class SupersededRatings {
  readonly ids: string[] = [];
  readonly #latest = new Map<string, string>();

  add(annotations: readonly Listed[]): void {
    for (const { annotation_id, author, target, kind } of annotations) {
      if (kind !== 'rating') continue;
      const key = JSON.stringify([author, target]);
      const earlier = this.#latest.get(key);
      if (earlier !== undefined) this.ids.push(earlier);
      this.#latest.set(key, annotation_id);
    }
  }
}

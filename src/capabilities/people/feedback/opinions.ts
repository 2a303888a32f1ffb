import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { RunOpinion } from './door.ts';
import type { AnnotationRow, QualityRow } from './records.ts';

/** Labels that say that a run, or the verdict on it, is not right. */
const DISPUTING: ReadonlySet<string> = new Set(['not-satisfied', 'unsatisfied', 'wrong-verdict', 'disputed']);

/** What people think of runs, from the totals of the runs and from their labels. */
export function opinionsFrom(
  quality: readonly QualityRow[],
  labels: readonly Pick<AnnotationRow, 'run_id' | 'body'>[],
): Map<string, RunOpinion> {
  const opinions = new Map<string, RunOpinion>();
  for (const { run_id, flagged, ratings, rating_sum } of quality) {
    const rated = ratings > 0 ? { meanRating: rating_sum / ratings } : {};
    opinions.set(run_id, { flagged: flagged === 1, disputed: false, ...rated });
  }
  for (const { run_id, body } of labels) {
    const { label = '' } = (JSON.parse(body) as Annotation).signal;
    if (DISPUTING.has(label)) opinions.set(run_id, { flagged: false, ...opinions.get(run_id), disputed: true });
  }
  return opinions;
}

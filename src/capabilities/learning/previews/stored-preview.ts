import type { PreviewCalendar, PreviewRating, PreviewRequest } from '../../../protocol/learning/previews.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { PreviewRow } from './records.ts';

/** A source run and its preview run, as far as they have come. */
export interface StoredPair {
  readonly sourceRunId: string;
  readonly state: 'waiting' | 'running' | 'judging' | 'done' | 'not-run';
  readonly runId?: string;
  /** Why it was not run. */
  readonly reason?: string;
  readonly before?: PreviewRating;
  readonly after?: PreviewRating;
  /** What models of the runs have cost. */
  readonly costs?: { readonly before: number; readonly after: number };
  /** The run that judges the one that has no rating yet. */
  readonly judgingRunId?: string;
  /** What the judges of the pair have cost. */
  readonly judgesUsd?: number;
}

/** What a preview has besides its columns, stored as one JSON text. */
export interface PreviewBody {
  /** In whose name it was asked for. */
  readonly subject: Subject;
  readonly options: Omit<PreviewRequest, 'maxRuns'>;
  readonly pairs: readonly StoredPair[];
  readonly calendar?: PreviewCalendar | undefined;
}

/** Reads the body of a row. */
export function bodyOf({ body }: Pick<PreviewRow, 'body'>): PreviewBody {
  return JSON.parse(body) as PreviewBody;
}

/** The row with another pair in one place. */
export function withPair(row: PreviewRow, place: number, pair: StoredPair): PreviewRow {
  const body = bodyOf(row);
  return { ...row, version: row.version + 1, body: JSON.stringify({ ...body, pairs: body.pairs.with(place, pair) }) };
}

/** What a preview has spent: on its runs, and on judges. */
export function spentBy(pairs: readonly StoredPair[]): number {
  return pairs.reduce((sum, { costs, judgesUsd = 0 }) => sum + (costs?.after ?? 0) + judgesUsd, 0);
}

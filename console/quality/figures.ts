import type { Bucket } from '../../src/protocol/format/choices.ts';
import type { RunSummary } from '../../src/protocol/running/runs.ts';

/** What a number of runs came to. */
export interface RunFigures {
  /** Runs that have ended. */
  readonly ended: number;
  readonly failed: number;
  /** Null if none has ended. */
  readonly successRate: number | null;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** Adds up runs; cancelled ones neither succeeded nor failed. */
export function figuresOf(runs: readonly RunSummary[]): RunFigures {
  const ended = runs.filter(({ endedAt }) => endedAt !== undefined);
  const completed = ended.filter(({ status }) => status === 'completed').length;
  const failed = ended.filter(({ status }) => status === 'failed').length;
  const durations = ended
    .map(({ createdAt, endedAt = createdAt }) => Date.parse(endedAt) - Date.parse(createdAt))
    .sort((a, b) => a - b);
  return {
    ended: ended.length,
    failed,
    successRate: completed + failed === 0 ? null : completed / (completed + failed),
    p50Ms: quantile(durations, 0.5),
    p95Ms: quantile(durations, 0.95),
  };
}

function quantile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}

/** The steps of a span of time, in UTC as the host counts them. */
export function stepsOf(since: number, until: number, bucket: Bucket): number[] {
  const first = new Date(since);
  first.setUTCMinutes(0, 0, 0);
  if (bucket !== 'hour') first.setUTCHours(0);
  // Weeks begin on Monday.
  if (bucket === 'week') first.setUTCDate(first.getUTCDate() - ((first.getUTCDay() + 6) % 7));
  const steps: number[] = [];
  for (let time = first.getTime(); time <= until; time = afterStep(time, bucket)) steps.push(time);
  return steps;
}

const STEP_MS: Readonly<Record<Bucket, number>> = {
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 2_592_000_000,
};

/** When the step that begins at a time ends. */
export function afterStep(time: number, bucket: Bucket): number {
  return time + STEP_MS[bucket];
}

import { type Refusal, refuse } from '../../protocol/errors.ts';
import { RUN_PREFIX } from '../../runtime/creation.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { firstIdAt } from '../../system/ids.ts';
import { type Bucket, type Span, spansOf } from './buckets.ts';
import {
  type CorrectionRow,
  type Counted,
  type FigureRow,
  figuresOf,
  type IdRange,
  mostCorrectedNodes,
  mostCorrectedWorkflows,
} from './figures.ts';

export interface SummaryRequest extends Counted {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly bucket: Bucket;
}

/** What is known of the quality of some runs. Each run counts once, by the time it was started. */
export interface Figures {
  /** Runs that have ended; the rates are parts of these. */
  readonly runs: number;
  readonly annotatedRuns: number;
  readonly ratings: number;
  readonly meanRating: number | null;
  readonly correctionRate: number;
  readonly flagRate: number;
  readonly interventionRate: number;
}

export interface Summary extends Figures {
  readonly mostCorrectedNodes: readonly { workflowId: string; nodeId: string; corrections: number }[];
  readonly mostCorrectedWorkflows: readonly { workflowId: string; corrections: number }[];
  readonly buckets: readonly (Figures & { readonly start: string })[];
}

const SPAN_DEFAULT_MS = 30 * 24 * 60 * 60 * 1_000;
const BUCKETS_MAX = 400;
const MOST_CORRECTED = 10;
/** Later than any run. */
const END_OF_TIME = 36 ** 9 - 1;

export async function summarize({ store, clock }: Runtime, request: SummaryRequest): Promise<Summary | Refusal> {
  const { since = (request.until ?? clock.now()) - SPAN_DEFAULT_MS, bucket } = request;
  const until = request.until ?? Math.max(clock.now(), since) + 1;
  if (since >= until) return refuse('validation_error', 'since must come before until.', { field: 'since' });
  const spans = spansOf(bucket, since, until, BUCKETS_MAX);
  if (!spans) {
    const message = `That is more than ${BUCKETS_MAX} buckets. Take larger ones, or a shorter time.`;
    return refuse('validation_error', message, { field: 'bucket', max: BUCKETS_MAX });
  }
  const idsOf = ({ from, before }: Pick<Span, 'from' | 'before'>): IdRange => ({
    from: firstIdAt(from, RUN_PREFIX),
    // Clocks differ: what another host has just started is not in the future.
    before: firstIdAt(before === until && request.until === undefined ? END_OF_TIME : before, RUN_PREFIX),
  });
  const rows: FigureRow[] = [];
  for (const span of spans) {
    const [row] = await store.read<FigureRow>(figuresOf(request, idsOf(span)));
    rows.push(row!);
    // Others get their turn in between: a long time is many short looks.
    await new Promise<void>((resolve) => clock.soon(resolve));
  }
  const whole = idsOf({ from: since, before: until });
  const nodes = await store.read<CorrectionRow>(mostCorrectedNodes(request, whole, MOST_CORRECTED));
  const workflows = await store.read<CorrectionRow>(mostCorrectedWorkflows(request, whole, MOST_CORRECTED));
  return {
    ...figures(rows.reduce(sum)),
    mostCorrectedNodes: nodes.map(({ workflow_id, node_id, corrections }) => ({
      workflowId: workflow_id,
      nodeId: node_id,
      corrections,
    })),
    mostCorrectedWorkflows: workflows.map(({ workflow_id, corrections }) => ({ workflowId: workflow_id, corrections })),
    buckets: spans.map(({ start }, index) => ({ start: new Date(start).toISOString(), ...figures(rows[index]!) })),
  };
}

function sum(a: FigureRow, b: FigureRow): FigureRow {
  return Object.fromEntries(
    Object.keys(a).map((name) => [name, a[name as keyof FigureRow] + b[name as keyof FigureRow]]),
  ) as unknown as FigureRow;
}

function figures(row: FigureRow): Figures {
  const rate = (part: number): number => (row.runs === 0 ? 0 : part / row.runs);
  return {
    runs: row.runs,
    annotatedRuns: row.annotated,
    ratings: row.ratings,
    meanRating: row.ratings === 0 ? null : row.rating_sum / row.ratings,
    correctionRate: rate(row.corrected),
    flagRate: rate(row.flagged),
    interventionRate: rate(row.intervened),
  };
}

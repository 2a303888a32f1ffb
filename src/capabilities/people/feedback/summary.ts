import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { FeedbackSummary } from '../../../protocol/people/annotations.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { turnOf } from '../../../system/breaks.ts';
import { bucketsOf, idsOf, type Period } from '../../periods.ts';
import {
  type CorrectionRow,
  type Counted,
  correctionsOf,
  type FigureRow,
  figuresOf,
  liveCorrectionsOf,
} from './summary-records.ts';

/** Which runs to summarise, and in buckets of which size. */
export interface SummaryRequest extends Counted, Period {}

const MOST_CORRECTED = 10;

/** Summarises runs that have ended. Each counts once, in the bucket of the time when it was started. */
export async function summarize(
  { store, clock }: Pick<Runtime, 'store' | 'clock'>,
  request: SummaryRequest,
): Promise<FeedbackSummary | Refusal> {
  const spans = bucketsOf(request, clock.now());
  if (isRefusal(spans)) return spans;
  const isOpen = request.until === undefined;
  const rows: FigureRow[] = [];
  for (const span of spans) {
    const [row] = await store.read<FigureRow>(figuresOf(request, idsOf(span, isOpen && span === spans.at(-1))));
    rows.push(row!);
    // Yields between buckets, so that a long period does not block other requests.
    await turnOf(clock);
  }
  const whole = idsOf({ from: spans[0]!.from, before: spans.at(-1)!.before }, isOpen);
  const every = await store.read<CorrectionRow>(correctionsOf(request, whole));
  const live = await store.read<CorrectionRow>(liveCorrectionsOf(request, whole));
  const counted = [...every, ...live.map((row) => ({ ...row, corrections: -row.corrections }))];
  const corrections = request.workflowId === undefined ? counted.filter(isNotManagement) : counted;
  return {
    ...figures(rows.reduce(sum)),
    mostCorrectedNodes: mostCorrected(corrections, ({ workflow_id, node_id }) =>
      node_id === null ? undefined : { workflowId: workflow_id, nodeId: node_id },
    ),
    mostCorrectedWorkflows: mostCorrected(corrections, ({ workflow_id }) => ({ workflowId: workflow_id })),
    buckets: spans.map(({ start }, index) => ({ start: new Date(start).toISOString(), ...figures(rows[index]!) })),
  };
}

function isNotManagement({ workflow_id }: CorrectionRow): boolean {
  return !isManagement(workflow_id);
}

function sum(a: FigureRow, b: FigureRow): FigureRow {
  return {
    runs: a.runs + b.runs,
    annotated: a.annotated + b.annotated,
    corrected: a.corrected + b.corrected,
    flagged: a.flagged + b.flagged,
    intervened: a.intervened + b.intervened,
    ratings: a.ratings + b.ratings,
    rating_sum: a.rating_sum + b.rating_sum,
  };
}

type Figures = Omit<FeedbackSummary['buckets'][number], 'start'>;

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

/** What was corrected most often, ties by name. */
function mostCorrected<T extends object>(
  rows: readonly CorrectionRow[],
  targetOf: (row: CorrectionRow) => T | undefined,
): (T & { corrections: number })[] {
  const counts = new Map<string, T & { corrections: number }>();
  for (const row of rows) {
    const target = targetOf(row);
    if (!target) continue;
    const name = JSON.stringify(target);
    counts.set(name, { ...target, corrections: (counts.get(name)?.corrections ?? 0) + row.corrections });
  }
  return [...counts]
    .filter(([, { corrections }]) => corrections > 0)
    .sort(([a, { corrections: many }], [b, { corrections: more }]) => more - many || (a < b ? -1 : 1))
    .slice(0, MOST_CORRECTED)
    .map(([, target]) => target);
}

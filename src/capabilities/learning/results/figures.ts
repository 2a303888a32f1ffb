import { RUN_PREFIX } from '../../../runtime/creation.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import { firstIdAt } from '../../../system/ids.ts';
import { type Costs, knownCosts } from '../../operations/costs/door.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { WindowFigures } from './measures.ts';
import { type ComparedRow, runsBetween } from './records.ts';

/** Runs of a window that are looked at, the newest first. */
const RUNS_MAX = 500;
/** Runs whose costs are added up. */
const COSTED_MAX = 200;

/** A time, and the one at which it ends. */
type Span = readonly [from: number, to: number];

/** What was seen in a window, and the runs that were not good. */
export interface SeenWindow extends WindowFigures {
  readonly badRunIds: readonly string[];
}

/** What others know about runs. */
interface FigureNeeds {
  readonly feedback: Pick<Feedback, 'opinions' | 'corrected'> | undefined;
  readonly costs: Pick<Costs, 'of'>;
}

/** Reads how runs went: how they ended, what people thought of them and what they cost. */
export class FigureReader {
  readonly #runtime: Pick<Runtime, 'store'>;
  readonly #feedback: FigureNeeds['feedback'];
  readonly #costs: FigureNeeds['costs'];

  constructor(runtime: Pick<Runtime, 'store'>, { feedback, costs }: FigureNeeds) {
    this.#runtime = runtime;
    this.#feedback = feedback;
    this.#costs = costs;
  }

  /** The figures of each window. */
  async of(
    from: Visibility,
    workflowIds: readonly string[],
    before: Span,
    after: Span,
  ): Promise<readonly [SeenWindow, SeenWindow]> {
    return [await this.#window(from, workflowIds, before), await this.#window(from, workflowIds, after)];
  }

  async #window(from: Visibility, workflowIds: readonly string[], [start, end]: Span): Promise<SeenWindow> {
    const ids = [firstIdAt(start, RUN_PREFIX), firstIdAt(end, RUN_PREFIX)] as const;
    const rows =
      workflowIds.length === 0
        ? []
        : await this.#runtime.store.read<ComparedRow>(runsBetween(from, workflowIds, ids, RUNS_MAX));
    const runIds = rows.map(({ run_id }) => run_id);
    const failed = rows.filter(({ status }) => status === 'failed').map(({ run_id }) => run_id);
    const corrected = await this.#feedback?.corrected(from.tenant, runIds);
    const wrong = runIds.filter((runId) => corrected?.has(runId));
    const opinions = runIds.length === 0 ? undefined : await this.#feedback?.opinions(from.tenant, runIds);
    return {
      runs: rows.length,
      failed: failed.length,
      corrected: wrong.length,
      ratings: [...(opinions?.values() ?? [])].flatMap(({ meanRating }) => meanRating ?? []),
      costs: await knownCosts(this.#costs, from.tenant, runIds.slice(0, COSTED_MAX)),
      badRunIds: [...new Set([...wrong, ...failed])],
    };
  }
}

import type { Runtime } from '../../../runtime/runtime.ts';
import { type Costs, knownCosts } from '../../operations/costs/door.ts';
import type { Feedback, RunOpinion } from '../../people/feedback/door.ts';
import { counted } from './phrases.ts';
import { findStatuses } from './records.ts';

/** How a run ended, and what people thought of it. */
export interface Outcome {
  readonly status: string;
  readonly opinion?: RunOpinion | undefined;
}

/** How the runs of a habit ended. */
interface OutcomeSummary {
  readonly runs: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly flagged: number;
  readonly disputed: number;
  readonly ratings: number;
  readonly meanRating?: number;
  /** Dollars for models, on average over the runs whose cost is known. */
  readonly meanCostUsd?: number;
}

/** A mean rating of this or less is a bad one. */
const LOW_RATING = 2;
/** Share of the runs that must have ended well. */
const GOOD_SHARE_MIN = 2 / 3;

/** Whether a run did what people wanted, as far as that is known. */
export function isGood({ status, opinion }: Outcome): boolean {
  return status === 'completed' && !opinion?.flagged && !opinion?.disputed && !isRatedLow(opinion);
}

function isRatedLow(opinion: RunOpinion | undefined): boolean {
  return opinion?.meanRating !== undefined && opinion.meanRating <= LOW_RATING;
}

/** Whether so many of the runs ended well that what they do may be repeated. */
export function isMostlyGood(outcomes: readonly Outcome[]): boolean {
  return outcomes.filter(isGood).length >= outcomes.length * GOOD_SHARE_MIN;
}

/** What others know about runs. */
interface OutcomeNeeds {
  readonly feedback: Pick<Feedback, 'opinions'> | undefined;
  readonly costs: Pick<Costs, 'of'>;
}

/** Reads how runs ended. */
export class Outcomes {
  readonly #runtime: Pick<Runtime, 'store'>;
  readonly #tenant: string;
  readonly #needs: OutcomeNeeds;

  constructor(runtime: Pick<Runtime, 'store'>, tenant: string, needs: OutcomeNeeds) {
    this.#runtime = runtime;
    this.#tenant = tenant;
    this.#needs = needs;
  }

  /** The outcomes of runs, by run; expired runs have none. */
  async of(runIds: readonly string[]): Promise<ReadonlyMap<string, Outcome>> {
    const distinct = [...new Set(runIds)];
    if (distinct.length === 0) return new Map();
    const rows = await this.#runtime.store.read<{ run_id: string; status: string }>(
      findStatuses(this.#tenant, distinct),
    );
    const opinions = (await this.#needs.feedback?.opinions(this.#tenant, distinct)) ?? new Map<string, RunOpinion>();
    return new Map(rows.map(({ run_id, status }) => [run_id, { status, opinion: opinions.get(run_id) }]));
  }

  /** Dollars for models, of each of the runs whose cost is known. */
  costs(runIds: readonly string[]): Promise<number[]> {
    return knownCosts(this.#needs.costs, this.#tenant, [...new Set(runIds)]);
  }

  /** Sums up how runs ended. */
  async summary(runIds: readonly string[]): Promise<OutcomeSummary> {
    const distinct = [...new Set(runIds)];
    const outcomes = [...(await this.of(distinct)).values()];
    const withStatus = (status: string): number => outcomes.filter((each) => each.status === status).length;
    const ratings = outcomes.flatMap(({ opinion }) => opinion?.meanRating ?? []);
    const costs = await this.costs(distinct);
    const hasCost = costs.some((cost) => cost > 0);
    return {
      runs: outcomes.length,
      completed: withStatus('completed'),
      failed: withStatus('failed'),
      cancelled: withStatus('cancelled'),
      flagged: outcomes.filter(({ opinion }) => opinion?.flagged).length,
      disputed: outcomes.filter(({ opinion }) => opinion?.disputed).length,
      ratings: ratings.length,
      ...(ratings.length === 0 ? {} : { meanRating: rounded(mean(ratings), 100) }),
      ...(hasCost ? { meanCostUsd: rounded(mean(costs), 1_000_000) } : {}),
    };
  }
}

/** How runs ended, in one sentence. */
export function inSentence(summary: OutcomeSummary): string {
  const { runs, completed, failed, cancelled, flagged, disputed, ratings, meanRating, meanCostUsd } = summary;
  const parts = [
    `${completed} of ${counted(runs, 'run')} completed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(cancelled > 0 ? [`${cancelled} were cancelled`] : []),
    ...(flagged > 0 ? [`${flagged} were flagged`] : []),
    ...(disputed > 0 ? [`${disputed} were disputed`] : []),
    ...(meanRating === undefined ? [] : [`${ratings} were rated ${meanRating} on average`]),
    ...(meanCostUsd === undefined ? [] : [`a run cost $${meanCostUsd} on average`]),
  ];
  return `How they ended: ${parts.join(', ')}.`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function rounded(value: number, parts: number): number {
  return Math.round(value * parts) / parts;
}

import type { Run } from '../../../engine/run/run.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { PreviewRating } from '../../../protocol/learning/previews.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import { and, type Change, changeOf, perform, unchanged, withResult } from '../../../runtime/change.ts';
import { SOURCE_MISSING } from '../../../runtime/fork/source-missing.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { TemporaryFailure } from '../../../system/temporary-failure.ts';
import type { JudgedRun, Verifiers } from '../verifiers/door.ts';
import type { Rated, Rater } from './rating.ts';
import { findPreview, type PreviewRow, updatePreview } from './records.ts';
import type { PreviewStarter } from './start.ts';
import { bodyOf, type StoredPair, spentBy, withPair } from './stored-preview.ts';

/** Kind of the work items of previews; the id of an item is that of its preview. */
export const PREVIEW_WORK = 'preview';

/** A run that ends wakes its preview; should that get lost, the preview looks after this time. */
const CHECK_MS = 60_000;
/** How long after the time of a preview is over its last run may take to end. */
const GRACE_MS = 60_000;
const STEPS_MAX = 200;

/** Whether there may be more to do now, or until when a preview can be left alone; undefined when it has ended. */
type Step = 'more' | { readonly until: number | undefined };

/** What a run has spent on models. */
interface Spending {
  readonly usd: number;
  /** What made it fail that says nothing about the draft. */
  readonly cut: string | undefined;
}

/** What the worker is built from. */
interface PreviewWorkerParts {
  readonly starter: Pick<PreviewStarter, 'start'>;
  readonly rater: Pick<Rater, 'rate'>;
  readonly verifiers: Pick<Verifiers, 'judgedRun'>;
}

/**
 * Handles the work item of a preview: one pair after the other is run and rated. Each step is a change that expects the
 * version of the preview, and a run starts in the unit that notes it: after a crash nothing is started or asked twice.
 */
export class PreviewWorker {
  readonly #runtime: Runtime;
  readonly #parts: PreviewWorkerParts;

  constructor(runtime: Runtime, parts: PreviewWorkerParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  readonly handle: WorkHandler = async ({ work_id: previewId, tenant }) => {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const step = await perform(this.#runtime, () => this.#decide(tenant, previewId));
      if (isRefusal(step)) throw new Error(`preview ${previewId} cannot continue: ${step.message}`);
      if (step !== 'more') return { dueAgainAt: step.until };
    }
    return { dueAgainAt: this.#runtime.clock.now() };
  };

  async #decide(tenant: string, previewId: string): Promise<Change<Step>> {
    const [row] = await this.#runtime.store.read<PreviewRow>(findPreview({ tenant }, previewId));
    if (row?.state !== 'running') return unchanged({ until: undefined });
    const { pairs } = bodyOf(row);
    const place = pairs.findIndex(({ state }) => state !== 'done' && state !== 'not-run');
    const pair = pairs[place];
    if (!pair) return this.#finish(row);
    if (pair.state === 'waiting') return this.#start(row, place, pair);
    return pair.state === 'running' ? this.#collect(row, place, pair) : this.#rate(row, place, pair);
  }

  #finish(row: PreviewRow): Change<Step> {
    const ended: PreviewRow = { ...row, state: 'done', version: row.version + 1, ended_at: this.#runtime.clock.now() };
    return changeOf<Step>({ until: undefined }, [updatePreview(ended)], { retryOn: ['preview'] });
  }

  async #start(row: PreviewRow, place: number, pair: StoredPair): Promise<Change<Step>> {
    const leftUsd = leftOf(row);
    const why = this.#reasonAgainst(row, leftUsd);
    const start = why === undefined ? await this.#parts.starter.start(row, place, leftUsd) : { reason: why };
    if ('reason' in start) return this.#move(row, place, { ...pair, state: 'not-run', reason: start.reason });
    const { runId } = start.change.result;
    return and(this.#move(row, place, { ...pair, state: 'running', runId }), start.change);
  }

  #reasonAgainst(row: PreviewRow, leftUsd: number): string | undefined {
    if (this.#runtime.clock.now() >= row.deadline_at) return 'the time of the preview is over';
    const { options } = bodyOf(row);
    return leftUsd <= 0 && options.budgetUsd > 0 ? 'the budget is used up' : undefined;
  }

  /** Once the run has ended, it is rated; what it cost counts at once. */
  async #collect(row: PreviewRow, place: number, pair: StoredPair): Promise<Change<Step>> {
    const { tenant } = row;
    const run = await this.#runtime.reader.row({ tenant }, pair.runId!);
    if (!run) return this.#move(row, place, { ...pair, state: 'not-run', reason: 'the run has expired' });
    if (!isTerminalStatus(run.status)) {
      const now = this.#runtime.clock.now();
      if (now < row.deadline_at + GRACE_MS) return unchanged<Step>({ until: now + CHECK_MS });
      return this.#move(row, place, { ...pair, state: 'not-run', reason: 'the time of the preview is over' });
    }
    const [before, after] = [
      await this.#spendingOf(tenant, pair.sourceRunId),
      await this.#spendingOf(tenant, pair.runId!),
    ];
    const costs = { before: before.usd, after: after.usd };
    if (after.cut !== undefined && before.cut === undefined) {
      return this.#move(row, place, { ...pair, state: 'not-run', reason: after.cut, costs });
    }
    return this.#move(row, place, { ...pair, state: 'judging', costs });
  }

  /** What models of the run itself have cost, and whether it lacked more: the children of a source are not repeated. */
  async #spendingOf(tenant: string, runId: string): Promise<Spending> {
    const spending = await this.#runtime.reader.view({ tenant }, runId, ({ run }) => ({
      usd: run.budget.spent.cost,
      cut: cutOf(run),
    }));
    return spending ?? { usd: 0, cut: undefined };
  }

  /** Rates the source, then the run with the draft in place. */
  async #rate(row: PreviewRow, place: number, pair: StoredPair): Promise<Change<Step>> {
    const rated = await this.#ratingOf(row, pair);
    if ('change' in rated) {
      const until = this.#runtime.clock.now() + CHECK_MS;
      if (rated.judgingRunId === pair.judgingRunId) return unchanged<Step>({ until });
      const waiting = this.#move(row, place, { ...pair, judgingRunId: rated.judgingRunId });
      return and(
        withResult(waiting, (): Step => ({ until })),
        rated.change,
      );
    }
    const { judgingRunId: _, judgesUsd = 0, ...rest } = pair;
    const judged = { ...rest, judgesUsd: judgesUsd + rated.judgeUsd };
    const { rating } = rated;
    return this.#move(
      row,
      place,
      pair.before ? { ...judged, state: 'done', after: rating } : { ...judged, before: rating },
    );
  }

  async #ratingOf(row: PreviewRow, pair: StoredPair): Promise<Rated> {
    const { subject, options } = bodyOf(row);
    const [source, run] = [await this.#judged(row, pair.sourceRunId), await this.#judged(row, pair.runId!)];
    if (!source || !run) return undecided('The run has expired.');
    if (this.#runtime.clock.now() >= row.deadline_at + GRACE_MS) return undecided('The time of the preview is over.');
    try {
      return await this.#parts.rater.rate(subject, {
        previewId: row.preview_id,
        options,
        source,
        run: pair.before ? run : source,
        leftUsd: Math.max(0, leftOf(row)),
        judgingRunId: pair.judgingRunId,
      });
    } catch (error) {
      if (error instanceof TemporaryFailure) throw error;
      this.#runtime.log.error({ previewId: row.preview_id, err: error }, 'a judge failed');
      return undecided('The judge failed.');
    }
  }

  #judged({ tenant }: PreviewRow, runId: string): Promise<JudgedRun | undefined> {
    return this.#parts.verifiers.judgedRun({ tenant }, runId);
  }

  #move(row: PreviewRow, place: number, pair: StoredPair): Change<Step> {
    return changeOf<Step>('more', [updatePreview(withPair(row, place, pair))], { retryOn: ['preview'] });
  }
}

/** Failures that say nothing about the draft. */
const CUTS: Readonly<Record<string, string>> = {
  budget_model_denied: 'a model has no price, so no budget can limit it: set one under prices in CAPSTAN_MODELS',
  [SOURCE_MISSING.code]: 'the run came to a step of which its source has no record',
  preview_suppressed: 'the run came to something that a preview does not do',
};

function cutOf({ ended, error, budget }: Run): string | undefined {
  if (ended === 'completed') return undefined;
  return budget.exhausted.has('cost') ? 'the budget is used up' : CUTS[error?.code ?? ''];
}

function leftOf(row: PreviewRow): number {
  const { options, pairs } = bodyOf(row);
  return options.budgetUsd - spentBy(pairs);
}

function undecided(reason: string): Rated {
  const rating: PreviewRating = { verdict: 'undecided', reason };
  return { rating, judgeUsd: 0 };
}

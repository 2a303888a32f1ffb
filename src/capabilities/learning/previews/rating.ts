import { defined } from '../../../protocol/format/json.ts';
import type { PreviewRating, PreviewRequest } from '../../../protocol/learning/previews.ts';
import { type Change, unchanged } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { redactPersonalData } from '../../../system/personal-data.ts';
import { redactText } from '../../../system/redaction.ts';
import type { JudgedRun, Judgement, Verifiers } from '../verifiers/door.ts';

/** A rating, or the run that judges and what starts it. */
export type Rated =
  | { readonly rating: PreviewRating; readonly judgeUsd: number }
  | { readonly judgingRunId: string; readonly change: Change<unknown> };

/** What is to be rated, and how. */
interface RatingRequest {
  readonly previewId: string;
  readonly options: Pick<PreviewRequest, 'verifierRef' | 'criteria'>;
  readonly source: JudgedRun;
  /** The run to rate: the source itself, or its preview. */
  readonly run: JudgedRun;
  readonly leftUsd: number;
  readonly judgingRunId?: string | undefined;
}

const CORRECTIONS_MAX = 10;
const OBJECTIVE_CHARS_MAX = 8_000;

/** Has the runs of a pair rated: by the verifier or the criteria of the request, by the host's model, or by what people said. */
export class Rater {
  readonly #verifiers: Pick<Verifiers, 'judge'>;

  constructor(verifiers: Pick<Verifiers, 'judge'>) {
    this.#verifiers = verifiers;
  }

  async rate(subject: Subject, request: RatingRequest): Promise<Rated> {
    const { options, source, run, previewId, leftUsd, judgingRunId } = request;
    const { verifierRef, criteria } = options;
    // Both runs are judged with what people said about the source: nobody has seen the other one yet.
    const judgement = await this.#verifiers.judge(subject, {
      check: verifierRef === undefined ? 'host' : 'verifier',
      verifierRef,
      criteria,
      goalId: previewId,
      objective: objectiveOf(source),
      objectiveVersion: 1,
      run: { ...run, annotations: source.annotations },
      maxCostUsd: leftUsd,
      wakes: previewId,
      ...(judgingRunId === undefined ? {} : { pending: { runId: judgingRunId } }),
    });
    if ('pending' in judgement) {
      const { runId, change } = judgement.pending;
      return { judgingRunId: runId, change: judgingRunId === undefined ? change : unchanged(undefined) };
    }
    const isAsked = verifierRef !== undefined || criteria !== undefined;
    const rating = 'undecided' in judgement && !isAsked ? byOutcome(source, run) : ratingOf(judgement);
    return {
      rating: { ...rating, status: run.snapshot.status },
      judgeUsd: judgement.costUsd ?? 0,
    };
  }
}

function correctionsOf({ annotations }: JudgedRun): string[] {
  return annotations.flatMap(({ signal }) => signal.correction ?? []).slice(-CORRECTIONS_MAX);
}

function objectiveOf(source: JudgedRun): string {
  const corrections = correctionsOf(source);
  const wishes =
    corrections.length === 0
      ? ''
      : `\nPeople asked for this when they saw earlier work:\n- ${corrections.join('\n- ')}`;
  return `The work does what its workflow is for.${wishes}`.slice(0, OBJECTIVE_CHARS_MAX);
}

function ratingOf(judgement: Exclude<Judgement, { readonly pending: unknown }>): PreviewRating {
  if ('undecided' in judgement) {
    const { reason, judge } = judgement;
    return { verdict: 'undecided', reason: shown(reason), ...defined({ judge }) };
  }
  const { satisfied, judge, evidence } = judgement;
  return {
    verdict: satisfied ? 'pass' : 'fail',
    judge,
    evidence: evidence.map(({ key, met, detail }) => ({
      key: shown(key),
      met,
      ...(detail === undefined ? {} : { detail: shown(detail) }),
    })),
  };
}

/**
 * What is known without a judge: a run that failed, or that people corrected, is not good; one that has in it what they
 * wrote, or that nobody complained about, is. Whether other words are better nobody can say.
 */
function byOutcome(source: JudgedRun, run: JudgedRun): PreviewRating {
  const judge = 'host:outcome';
  if (run.snapshot.status !== 'completed') return { verdict: 'fail', judge };
  const corrections = correctionsOf(source);
  const isSource = run.snapshot.runId === source.snapshot.runId;
  if (isSource) return { verdict: corrections.length > 0 ? 'fail' : 'pass', judge };
  const said = plain(JSON.stringify(run.outputs));
  if (corrections.length > 0 && corrections.every((text) => said.includes(plain(JSON.stringify(text).slice(1, -1))))) {
    return { verdict: 'pass', judge };
  }
  const isEqual = JSON.stringify(run.outputs) === JSON.stringify(source.outputs);
  if (isEqual) return { verdict: corrections.length > 0 ? 'fail' : 'pass', judge };
  return {
    verdict: 'undecided',
    judge,
    reason: 'Name a verifier or criteria: the result differs, and nothing says which is better.',
  };
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/\s+/g, ' ');
}

function shown(text: string): string {
  return redactPersonalData(redactText(text));
}

import type { EffectMeasure, ProposalEffect } from '../../../protocol/learning/results.ts';
import { fisherExact, mean, permutationTest } from './significance.ts';

/** What was seen of the runs in one window. */
export interface WindowFigures {
  readonly runs: number;
  readonly failed: number;
  readonly corrected: number;
  /** The mean rating of each run that people rated. */
  readonly ratings: readonly number[];
  /** What models cost in each run. */
  readonly costs: readonly number[];
}

/** With fewer runs on either side nothing is said. */
const RUNS_MIN = 5;
/** A difference that chance makes more often than this says nothing. */
const P_MAX = 0.05;
/** What the host acts on must be surer: three things are looked at, again and again. */
const ACT_P_MAX = 0.01;

/** What has changed from one window to the next, and how sure that is. */
export function measuresOf(before: WindowFigures, after: WindowFigures): EffectMeasure[] {
  const hasCost = [...before.costs, ...after.costs].some((cost) => cost > 0);
  return [
    countMeasure('failures', [before.failed, before.runs], [after.failed, after.runs]),
    countMeasure('corrections', [before.corrected, before.runs], [after.corrected, after.runs]),
    meanMeasure('ratings', before.ratings, after.ratings),
    ...(hasCost ? [meanMeasure('cost', before.costs, after.costs)] : []),
  ];
}

/** Worse if anything but the cost is; better if something is and nothing is worse. */
export function overall(measures: readonly EffectMeasure[]): ProposalEffect['verdict'] {
  const verdicts = measures.filter(({ name }) => name !== 'cost').map(({ verdict }) => verdict);
  if (verdicts.includes('worse')) return 'worse';
  if (verdicts.includes('better')) return 'better';
  return verdicts.every((verdict) => verdict === 'too-few') ? 'too-few' : 'unclear';
}

/** What is so surely worse that the proposal should be taken back. */
export function harms(measures: readonly EffectMeasure[]): EffectMeasure[] {
  return measures.filter(({ name, verdict, p = 1 }) => name !== 'cost' && verdict === 'worse' && p < ACT_P_MAX);
}

type Count = readonly [value: number, runs: number];

function countMeasure(name: 'failures' | 'corrections', [a, ofA]: Count, [b, ofB]: Count): EffectMeasure {
  const figures = { name, before: { runs: ofA, value: a }, after: { runs: ofB, value: b } };
  const told = `${a} of ${ofA} before, ${b} of ${ofB} after`;
  if (Math.min(ofA, ofB) < RUNS_MIN) return tooFew(figures, told);
  const change = b / ofB - a / ofA;
  return judged(figures, { p: fisherExact(a, ofA, b, ofB), change: -change, told, words: ['more', 'fewer'] });
}

function meanMeasure(name: 'ratings' | 'cost', before: readonly number[], after: readonly number[]): EffectMeasure {
  const [a, b] = [rounded(mean(before)), rounded(mean(after))];
  const figures = { name, before: { runs: before.length, value: a }, after: { runs: after.length, value: b } };
  const unit = name === 'cost' ? '$' : '';
  const told = `${unit}${a} on average of ${before.length} before, ${unit}${b} of ${after.length} after`;
  if (Math.min(before.length, after.length) < RUNS_MIN) return tooFew(figures, told);
  const change = mean(after) - mean(before);
  const words = name === 'cost' ? (['higher', 'lower'] as const) : (['lower', 'higher'] as const);
  return judged(figures, {
    p: permutationTest(before, after),
    change: name === 'cost' ? -change : change,
    told,
    words,
  });
}

type Figures = Pick<EffectMeasure, 'name' | 'before' | 'after'>;

function tooFew(figures: Figures, told: string): EffectMeasure {
  return { ...figures, verdict: 'too-few', sentence: `${figures.name}: too few runs to tell (${told})` };
}

/** `change` is positive for the better; the words say which way a worse and a better figure go. */
function judged(
  figures: Figures,
  { p, change, told, words }: { p: number; change: number; told: string; words: readonly [string, string] },
): EffectMeasure {
  const shown = p < 0.001 ? 'p < 0.001' : `p ${Math.round(p * 1_000) / 1_000}`;
  const its = { ...figures, p: rounded(p) };
  if (p >= P_MAX || change === 0) {
    const sentence = `${figures.name}: ${told}; may well be chance (${shown})`;
    return { ...its, verdict: 'unclear', sentence };
  }
  const sentence = `${change < 0 ? words[0] : words[1]} ${figures.name}: ${told}; unlikely to be chance (${shown})`;
  return { ...its, verdict: change < 0 ? 'worse' : 'better', sentence };
}

function rounded(value: number): number {
  return Math.round(value * 1_000_000) / 1_000_000;
}

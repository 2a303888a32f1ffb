import type { PreviewCalendar, PreviewPair, PreviewSummary } from '../../../protocol/learning/previews.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import { type StoredPair, spentBy } from './stored-preview.ts';

/** What the draft changes for a pair; undefined while it is not rated. A run that fails now and did not before is worse. */
export function changeOfPair({ state, before, after }: StoredPair): PreviewPair['change'] {
  if (state !== 'done' || !before || !after) return undefined;
  const isBroken = before.status === 'completed' && after.status !== 'completed';
  if (isBroken && before.verdict !== 'fail') return 'worse';
  if (before.verdict === 'undecided' || after.verdict === 'undecided') return 'undecided';
  if (before.verdict === after.verdict) return 'same';
  return after.verdict === 'pass' ? 'now-passes' : 'worse';
}

/** Counts the pairs of a preview, and says the result in words. */
export function summaryOf(kind: string, pairs: readonly StoredPair[], calendar?: PreviewCalendar): PreviewSummary {
  const changes = pairs.map(changeOfPair);
  const count = (change: PreviewPair['change']): number => changes.filter((each) => each === change).length;
  const figures = {
    runs: pairs.length,
    nowPass: count('now-passes'),
    worse: count('worse'),
    same: count('same'),
    undecided: count('undecided'),
    notRun: pairs.filter(({ state }) => state === 'not-run').length,
    ...costDelta(pairs),
    spentUsd: rounded(spentBy(pairs)),
  };
  return { ...figures, sentence: calendar ? calendarSentence(calendar) : sentenceOf(kind, figures) };
}

function costDelta(pairs: readonly StoredPair[]): Pick<PreviewSummary, 'costDeltaUsd'> {
  const deltas = pairs.flatMap(({ state, costs }) =>
    costs && state !== 'not-run' ? [costs.after - costs.before] : [],
  );
  if (deltas.length === 0) return {};
  return { costDeltaUsd: rounded(deltas.reduce((sum, delta) => sum + delta, 0) / deltas.length) };
}

type Figures = Omit<PreviewSummary, 'sentence' | 'spentUsd'>;

function sentenceOf(kind: string, { runs, nowPass, worse, same, undecided, notRun, costDeltaUsd }: Figures): string {
  const under = runs - nowPass - worse - same - undecided - notRun;
  const parts = [
    `${nowPass} now ${nowPass === 1 ? 'passes' : 'pass'}`,
    `${worse} worse`,
    `${same} same`,
    ...(undecided > 0 ? [`${undecided} undecided`] : []),
    ...(notRun > 0 ? [`${notRun} not run`] : []),
    ...(under > 0 ? [`${under} to come`] : []),
    ...(costDeltaUsd === undefined ? [] : [`${signed(costDeltaUsd)} per run`]),
  ];
  return `${runs} ${NOUNS[kind as ArtifactKind] ?? ''}${runs === 1 ? 'run' : 'runs'}: ${parts.join(', ')}`;
}

/** Prompts are drafted from corrections alone. */
const NOUNS: Partial<Record<ArtifactKind, string>> = { 'prompt-template': 'corrected ' };

function calendarSentence({ starts, unmatched, next: [first] }: PreviewCalendar): string {
  const met = starts.filter(({ firing }) => firing !== undefined).length;
  const parts = [
    `${starts.length} past ${starts.length === 1 ? 'start' : 'starts'}: ${met} next to a firing`,
    `${unmatched.length} firings where nobody started a run`,
    first === undefined ? 'it would not fire again' : `the next firing would be at ${first}`,
  ];
  return parts.join(', ');
}

function signed(usd: number): string {
  return `${usd < 0 ? '-' : '+'}$${Math.abs(usd)}`;
}

function rounded(usd: number): number {
  return Math.round(usd * 1_000_000) / 1_000_000;
}

import type { RunSummary } from '../../src/protocol/running/runs.ts';
import type { ListedOrigin } from './search.ts';

/** What a run is if nobody started it directly, in a word; undefined for all others. */
export function originWord({ parentRunId, forkedFrom, preview }: RunSummary): string | undefined {
  if (preview) return 'preview';
  if (forkedFrom) return forkedFrom.mode === 'replay' ? 'replay' : 'branch';
  return parentRunId === undefined ? undefined : 'sub-run';
}

/** The run that a run belongs to, in words, for whoever wants to know more. */
export function originText({ parentRunId, forkedFrom, preview }: RunSummary): string | undefined {
  if (preview) return `Repeats ${forkedFrom?.runId} with the draft of a proposal`;
  if (forkedFrom) return `${forkedFrom.mode === 'replay' ? 'Replay' : 'Branch'} of ${forkedFrom.runId}`;
  return parentRunId === undefined ? undefined : `Started by a node of ${parentRunId}`;
}

/** What can be listed, in the words of the filter; the first is what is listed without one. */
export const ORIGIN_CHOICES: readonly (readonly [ListedOrigin | '', string])[] = [
  ['', 'All but previews'],
  ['direct', 'Started directly'],
  ['child', 'Sub-runs'],
  ['fork', 'Branches and replays'],
  ['preview', 'Previews'],
  ['any', 'All runs'],
];

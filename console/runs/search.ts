import { RUN_ORIGINS, RUN_STATUSES, type RunStatus } from '../../src/protocol/running/run-status.ts';

/** What the list of runs can show by how runs came to be. */
export const LISTED_ORIGINS = [...RUN_ORIGINS, 'preview', 'any'] as const;
/** One of LISTED_ORIGINS. */
export type ListedOrigin = (typeof LISTED_ORIGINS)[number];

/** The filters of the list of runs, as the address has them. */
export interface RunsSearch {
  readonly status?: RunStatus;
  readonly workflowId?: string;
  readonly tag?: string;
  readonly flagged?: true;
  readonly since?: string;
  readonly until?: string;
  readonly text?: string;
  /** Which runs are listed by how they came to be; without it, all but previews. */
  readonly origin?: ListedOrigin;
  /** The workflow whose start form is open. */
  readonly start?: string;
}

/** What is shown of a run, as the address has it. */
export interface RunSearch {
  readonly node?: string;
  /** The moment that is shown: the state after the event with this sequence. */
  readonly at?: number;
  readonly tab?: 'timeline' | 'events' | 'state';
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Reads the filters; what makes no sense is left out. */
export function readRunsSearch(search: Record<string, unknown>): RunsSearch {
  const status = RUN_STATUSES.find((known) => known === search.status);
  const origin = LISTED_ORIGINS.find((known) => known === search.origin);
  const [workflowId, tag, since, until, words, start] = [
    search.workflowId,
    search.tag,
    search.since,
    search.until,
    search.text,
    search.start,
  ].map(text);
  return {
    ...(status && { status }),
    ...(workflowId && { workflowId }),
    ...(tag && { tag }),
    ...(search.flagged === true && { flagged: true as const }),
    ...(since && { since }),
    ...(until && { until }),
    ...(words && { text: words }),
    ...(origin && { origin }),
    ...(start && { start }),
  };
}

/** Reads what is shown of a run. */
export function readRunSearch(search: Record<string, unknown>): RunSearch {
  const tab = (['timeline', 'events', 'state'] as const).find((known) => known === search.tab);
  const node = text(search.node);
  return {
    ...(node && { node }),
    ...(typeof search.at === 'number' && search.at >= 0 && { at: search.at }),
    ...(tab && { tab }),
  };
}

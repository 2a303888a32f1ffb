/** The spans of time that can be looked at, each with the length of its steps. */
export const RANGES = {
  day: ['Last day', 86_400_000, 'hour'],
  week: ['Last 7 days', 604_800_000, 'day'],
  month: ['Last 30 days', 2_592_000_000, 'day'],
  quarter: ['Last 90 days', 7_776_000_000, 'week'],
} as const;
/** The name of a span. */
export type Range = keyof typeof RANGES;

/** What is looked at, as the address has it. */
export interface QualitySearch {
  readonly range?: Range;
  readonly workflowId?: string;
}

/** Reads what is looked at; what makes no sense is left out. */
export function readQualitySearch(search: Record<string, unknown>): QualitySearch {
  const range = typeof search.range === 'string' && Object.hasOwn(RANGES, search.range) ? search.range : undefined;
  return {
    ...(range !== undefined && { range: range as Range }),
    ...(typeof search.workflowId === 'string' && search.workflowId !== '' && { workflowId: search.workflowId }),
  };
}

/** The parts of the page, in their order. */
export const SECTIONS = [
  'host',
  'keys',
  'audit',
  'workers',
  'triggers',
  'webhooks',
  'schedules',
  'prompts',
  'agents',
  'tools',
  'packs',
] as const;
/** One of SECTIONS. */
export type Section = (typeof SECTIONS)[number];

/** What is shown, as the address has it. */
export interface OperationsSearch {
  readonly section?: Section;
  /** What is opened beside the list. */
  readonly item?: string;
}

/** Reads what is shown; what makes no sense is left out. */
export function readOperationsSearch(search: Record<string, unknown>): OperationsSearch {
  const section = SECTIONS.find((known) => known === search.section);
  return {
    ...(section && { section }),
    ...(typeof search.item === 'string' && search.item !== '' && { item: search.item }),
  };
}

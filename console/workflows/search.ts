/** What is shown of a workflow, as the address has it. */
export interface WorkflowSearch {
  readonly view?: 'graph' | 'versions' | 'runs' | 'definition';
  readonly node?: string;
  /** The version that is compared, and the one that it is compared with. */
  readonly left?: number;
  readonly right?: number;
  /** The start form is open. */
  readonly starting?: true;
}

/** The version that the editor begins with; the current one without. */
export interface EditSearch {
  readonly from?: number;
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;

/** Reads what is shown of a workflow; what makes no sense is left out. */
export function readWorkflowSearch(search: Record<string, unknown>): WorkflowSearch {
  const view = (['graph', 'versions', 'runs', 'definition'] as const).find((known) => known === search.view);
  const [left, right] = [count(search.left), count(search.right)];
  return {
    ...(view && { view }),
    ...(typeof search.node === 'string' && search.node !== '' && { node: search.node }),
    ...(left && { left }),
    ...(right && { right }),
    ...(search.starting === true && { starting: true as const }),
  };
}

/** Reads the version that the editor begins with. */
export function readEditSearch(search: Record<string, unknown>): EditSearch {
  const from = count(search.from);
  return from === undefined ? {} : { from };
}

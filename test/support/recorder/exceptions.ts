/** What the published schemas refuse and the host sends all the same, because it was decided so. */
export interface Exception {
  readonly schema: string;
  /** The problem, as a check words it. */
  readonly problem: RegExp;
  /** The page that decides, beside the published schemas, and words of it. */
  readonly page: string;
  readonly decision: string;
}

export const EXCEPTIONS: readonly Exception[] = [
  {
    schema: 'workflow-definition',
    problem: /^\/nodes\/\d+ must NOT have additional properties \{"additionalProperty":"irreversibleEffect"\}$/,
    page: 'wire/execution.md',
    decision: '| `irreversibleEffect` | | boolean, newer revision |',
  },
  {
    schema: 'workflow-definition',
    problem: /^\/variables\/\d+ must NOT have additional properties \{"additionalProperty":"format"\}$/,
    page: 'wire/execution.md',
    decision: '- `format` (RFC 0136) is a display hint',
  },
];

/** Whether a problem was decided. */
export function isDecided(schema: string, problem: string): boolean {
  return EXCEPTIONS.some((exception) => exception.schema === schema && exception.problem.test(problem));
}

/** What a published schema refuses and the host sends all the same, because it was decided so. */
export interface Exception {
  /** Its name, or `payload of <type>`. */
  readonly schema: string;
  /** The problem, as a check words it. */
  readonly problem: RegExp;
  /** The page that decides, beside the published schemas, and words of it. */
  readonly page: string;
  readonly decision: string;
}

/** All of them. `test/blackbox/recorder.test.ts` has a sample of each and fails for one that is not needed any more. */
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
  {
    schema: 'workflow-definition',
    problem: /^\/edges\/\d+\/condition\/type must be equal to one of the allowed values /,
    page: 'wire/execution.md',
    decision: '(the last two were added by RFC 0134; older schema copies lack them)',
  },
  {
    schema: 'payload of channel.written',
    problem: /^\/reducer must match pattern /,
    page: 'wire/execution.md',
    decision: '**`channel.written.reducer`** pattern omits `message`, although `message` is a declared reducer.',
  },
  {
    schema: 'debug-bundle',
    problem: /^\/bundleVersion must match pattern /,
    page: 'wire/durability.md',
    decision: 'A check against the published schema leaves this member and `run.status` (20) out',
  },
  {
    schema: 'audit-verify-result',
    problem:
      /^\/anomalies\/\d+(\/\w+PrevHash must be string| must have required property '\w+PrevHash'| .*"(kind|detail|checkpoint)"\}$)/,
    page: 'wire/durability.md',
    decision: 'Older schema revision knew only the first row and required both hashes.',
  },
];

/** Whether a problem was decided. */
export function isDecided(schema: string, problem: string): boolean {
  return EXCEPTIONS.some((exception) => exception.schema === schema && exception.problem.test(problem));
}

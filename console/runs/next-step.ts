/** What to do about an error, by its code: one plain sentence each. */
const STEPS: Readonly<Record<string, string>> = {
  validation_error: 'Check the inputs of the node and its configuration; then start a similar run with other inputs.',
  run_timeout:
    'The run took longer than its limit. Raise the limit of the workflow, or fork from before the slow step.',
  approval_rejected: 'A person rejected it. Read the reason in the log; fork from the question to ask again.',
  approval_timeout: 'Nobody answered in time. Fork from the question to ask again, or give it more time.',
  loopback_limit_exceeded: 'A loop exceeded its limit of iterations. Check the condition that should end it.',
  budget_exhausted: 'The budget was used up. Start a similar run with a larger budget.',
  credential_required: 'A credential is missing. Ask the operator of this host to set it.',
};

/** What to do about an error. */
export function nextStepFor(code: string): string {
  return (
    (Object.hasOwn(STEPS, code) ? STEPS[code] : undefined) ??
    'Open the node to see its inputs and attempts. Once the cause is fixed, fork from that step: earlier steps are not repeated.'
  );
}

import { type Refusal, refuse } from '../../protocol/errors.ts';
import type { ProposalState } from '../../protocol/proposals.ts';
import type { Problem } from './installers/installer.ts';

/** What may become of a proposal. What was applied may be put away only once it is uninstalled. */
const MOVES: Record<ProposalState, readonly ProposalState[]> = {
  draft: ['revised', 'applied', 'rejected', 'archived'],
  revised: ['revised', 'applied', 'rejected', 'archived'],
  applied: [],
  rejected: ['archived'],
  archived: [],
};

export function refuseMove(
  { state, uninstalled_at }: { readonly state: ProposalState; readonly uninstalled_at: number | null },
  to: ProposalState,
): Refusal | undefined {
  if (MOVES[state].includes(to)) return undefined;
  if (state === 'applied' && to === 'archived' && uninstalled_at !== null) return undefined;
  const hint = state === 'applied' && uninstalled_at === null ? ' Uninstall what it installed first.' : '';
  return refuse('conflict', `A proposal that is ${state} cannot become ${to}.${hint}`, { state });
}

/** The artifact does not fit its kind. */
export function malformed(problems: readonly Problem[]): Refusal {
  const [{ path, message } = { path: '', message: 'does not fit' }] = problems;
  const place = path === '' ? 'The artifact' : path;
  return { ...refuse('validation_error', `${place}: ${message}`, { path, fields: problems }), status: 422 };
}

/** What it would take the place of is not what it was when somebody last looked at it. */
export function stale(current: string): Refusal {
  const message = 'What this would take the place of has changed since. Look at it again, and revise.';
  return refuse('conflict', message, { reason: 'stale', current: current || null });
}

import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { ProposalState } from '../../../protocol/learning/proposals.ts';
import type { Problem } from './installers/installer.ts';

/** The moves of each state. An applied proposal may be archived once its artifact is uninstalled. */
const MOVES: Record<ProposalState, readonly ProposalState[]> = {
  draft: ['revised', 'applied', 'rejected', 'archived'],
  revised: ['revised', 'applied', 'rejected', 'archived'],
  applied: [],
  rejected: ['archived'],
  archived: [],
};

/** Refuses a move that the state of a proposal does not allow. */
export function refuseMove(
  { state, uninstalled_at }: { readonly state: ProposalState; readonly uninstalled_at: number | null },
  to: ProposalState,
): Refusal | undefined {
  if (MOVES[state].includes(to)) return undefined;
  if (state === 'applied' && to === 'archived' && uninstalled_at !== null) return undefined;
  const hint = state === 'applied' && uninstalled_at === null ? ' Uninstall what it installed first.' : '';
  return refuse('conflict', `A proposal that is ${state} cannot become ${to}.${hint}`, { state });
}

/** Every revision is stored in full and shown with its diff, so their number and size are limited. */
const REVISIONS_MAX = 200;
const HISTORY_CHARS_MAX = 4_000_000;

/** The size of a proposal's history. */
export interface HistorySize {
  readonly revisions: number;
  readonly chars: number;
}

/** Refuses a revision that would make the history of a proposal too large. */
export function refuseMoreRevisions({ revisions, chars }: HistorySize, next: string): Refusal | undefined {
  if (revisions >= REVISIONS_MAX) {
    return refuse('conflict', `A proposal may have at most ${REVISIONS_MAX} revisions.`, { limit: REVISIONS_MAX });
  }
  if (chars + next.length <= HISTORY_CHARS_MAX) return undefined;
  const message = `The revisions of a proposal may have at most ${HISTORY_CHARS_MAX} characters in total.`;
  return refuse('conflict', message, { limit: HISTORY_CHARS_MAX });
}

/** The same evidence was proposed before, whatever became of that proposal. */
export const KNOWN_EVIDENCE = refuse('conflict', 'This evidence was proposed before.', { reason: 'known-evidence' });

/** The tenant has as many proposals to review as it may have. */
export const TOO_MANY_PENDING = refuse(
  'conflict',
  'Too many proposals wait for review. Decide on some of them first.',
  {
    reason: 'too-many-pending',
  },
);

/** The refusal for an artifact that is not valid for its kind. */
export function malformed(problems: readonly Problem[]): Refusal {
  const [{ path, message } = { path: '', message: 'is not valid' }] = problems;
  const subject = path === '' ? 'The artifact' : path;
  return { ...refuse('validation_error', `${subject}: ${message}`, { path, fields: problems }), status: 422 };
}

/** The refusal for a proposal whose base changed: what it would replace is not what its revision was written for. */
export function stale(current: string): Refusal {
  const message =
    'What this proposal would replace has changed since its last revision. Review it and revise the proposal.';
  return refuse('conflict', message, { reason: 'stale', current: current || null });
}

import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { ProposalState } from '../../../protocol/learning/proposals.ts';
import { UnitRefused } from '../../../runtime/command.ts';
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

/** Each revision is kept whole, and all of them are shown together, with what they changed. */
const REVISIONS_MAX = 200;
const HISTORY_CHARS_MAX = 4_000_000;

/** How much has been proposed so far. */
export interface HistorySize {
  readonly revisions: number;
  readonly chars: number;
}

export function refuseMoreRevisions({ revisions, chars }: HistorySize, next: string): Refusal | undefined {
  if (revisions >= REVISIONS_MAX) {
    return refuse('conflict', `A proposal may have ${REVISIONS_MAX} revisions.`, { limit: REVISIONS_MAX });
  }
  if (chars + next.length <= HISTORY_CHARS_MAX) return undefined;
  const message = `The revisions of a proposal may have ${HISTORY_CHARS_MAX} characters together.`;
  return refuse('conflict', message, { limit: HISTORY_CHARS_MAX });
}

/** It has moved on since it was looked at. The header keeps this answer from being kept: it is none. */
export const LOOK_AGAIN: Refusal = {
  ...refuse('conflict', 'The proposal is being changed by others. Try again.'),
  headers: { 'Retry-After': '1' },
};

/** Each try that fails is one that succeeded elsewhere. */
const TRIES_MAX = 10;
/** Promises whose breach means that somebody else was quicker. */
const RACES: readonly string[] = ['proposal', 'revision'];

/** Again, as long as somebody else was quicker. */
export async function retrying<T>(attempt: () => Promise<T | Refusal>): Promise<T | Refusal> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    try {
      const outcome = await attempt();
      if (outcome !== LOOK_AGAIN) return outcome;
    } catch (error) {
      const broke = error instanceof UnitRefused ? error.broke : undefined;
      if (broke === 'schedules') return refuse('conflict', 'The tenant has as many schedules as it may have.');
      if (broke === undefined || !RACES.includes(broke)) throw error;
    }
  }
  return LOOK_AGAIN;
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

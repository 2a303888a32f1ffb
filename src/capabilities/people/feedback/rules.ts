import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { RATING, type Signal, type SignalKind } from '../../../protocol/people/annotations.ts';

/** The member that a signal of each kind must have. */
const REQUIRED: Partial<Record<SignalKind, keyof Signal>> = {
  rating: 'rating',
  label: 'label',
  correction: 'correction',
};

/** Refuses a signal without the member that its kind requires. */
export function checkSignal(signal: Signal): Refusal | undefined {
  const required = REQUIRED[signal.kind];
  if (required === undefined || signal[required] !== undefined) return undefined;
  const field = `signal.${required}`;
  return refuse('validation_error', `${field} is missing.`, { field });
}

/** A rating up to this asks for a review of the run. */
const LOW_RATING = 2;
/** The label by which a reviewer says that a run has been reviewed. */
export const REVIEWED = 'reviewed';

/** What an annotation does to the list of runs to review. */
type Review = { readonly asks: string } | { readonly closes: true } | undefined;

/** Whether a signal asks for a review, and why, or closes one. */
export function reviewOf({ kind, rating = RATING.maximum, label }: Signal): Review {
  if (kind === 'flag') return { asks: 'Flagged' };
  if (kind === 'correction') return { asks: 'Corrected' };
  if (kind === 'rating' && rating <= LOW_RATING) return { asks: `Rated ${rating}` };
  return kind === 'label' && label === REVIEWED ? { closes: true } : undefined;
}

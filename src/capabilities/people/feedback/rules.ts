import { type Refusal, refuse } from '../../../protocol/errors.ts';
import {
  type Annotation,
  type AnnotationCreate,
  RATING,
  type Signal,
  type SignalKind,
} from '../../../protocol/people/annotations.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';

/** What each kind of signal is nothing without. */
const NEEDED: Partial<Record<SignalKind, keyof Signal>> = {
  rating: 'rating',
  label: 'label',
  correction: 'correction',
};

/** Whether a signal whose members have the right shapes says what its kind is about. */
export function checkSignal(signal: Signal): Refusal | undefined {
  const needed = NEEDED[signal.kind];
  if (needed === undefined || signal[needed] !== undefined) return undefined;
  const field = `signal.${needed}`;
  return refuse('validation_error', `${field} is missing.`, { field });
}

/** Who judges: somebody with a credential, or an agent inside a run. */
export interface Author {
  readonly principalRef: string;
  readonly isAgent: boolean;
}

export interface Recording {
  readonly annotationId: string;
  readonly runId: string;
  readonly author: Author;
  readonly at: number;
}

/** The annotation as it is kept. What people wrote passes the gate for text first. */
export function annotationOf({ target, signal, note }: AnnotationCreate, recording: Recording): Annotation {
  const { annotationId, runId, author, at } = recording;
  return {
    annotationId,
    target: { runId, ...target },
    signal: redactValue(signal),
    actor: { principalRef: author.principalRef },
    ...(note === undefined ? {} : { note: redactText(note) }),
    createdAt: new Date(at).toISOString(),
  };
}

/** Where an annotation is anchored, as a key: annotations with the same one are about the same thing. */
export function targetKey({ eventId, nodeId }: Annotation['target']): string {
  return JSON.stringify([eventId ?? null, nodeId ?? null]);
}

export function targetFrom(key: string): Pick<Annotation['target'], 'eventId' | 'nodeId'> {
  const [eventId, nodeId] = JSON.parse(key) as (string | null)[];
  return { ...(eventId ? { eventId } : {}), ...(nodeId ? { nodeId } : {}) };
}

/** Whose ratings replace whose. An agent that calls itself like a person is still somebody else. */
export function authorKey({ principalRef, isAgent }: Author): string {
  return `${isAgent ? 'agent' : 'principal'}:${principalRef}`;
}

/** A rating up to this is a reason to look at the run. */
const LOW_RATING = 2;
/** The label by which a reviewer says that a run has been looked at. */
export const REVIEWED = 'reviewed';

/** What an annotation does to the list of runs that somebody should look at. */
export type Review = { readonly asks: string } | { readonly closes: true } | undefined;

export function reviewOf({ kind, rating = RATING.maximum, label }: Signal): Review {
  if (kind === 'flag') return { asks: 'Flagged' };
  if (kind === 'correction') return { asks: 'Corrected' };
  if (kind === 'rating' && rating <= LOW_RATING) return { asks: `Rated ${rating}` };
  return kind === 'label' && label === REVIEWED ? { closes: true } : undefined;
}

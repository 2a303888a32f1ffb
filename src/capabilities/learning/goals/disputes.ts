import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { Write } from '../../../store/sql.ts';
import { GOAL_WORK } from './changes.ts';
import { callAwaiting, closeDispute, noteDecision, noteOpinion, type VerdictOpinion } from './opinion-records.ts';

/** Ratings from GOOD_RATING on approve of a run, ratings up to BAD_RATING do not; those in between say nothing. */
const GOOD_RATING = 4;
const BAD_RATING = 2;

/** Labels that are an opinion on a verdict. */
const LABELS: Readonly<Record<string, Opinion>> = {
  satisfied: 'reached',
  'not-satisfied': 'missed',
  unsatisfied: 'missed',
  'wrong-verdict': 'wrong',
  disputed: 'wrong',
};
const REVIEWED = 'reviewed';

/** The goal was reached, it was missed, the work was good, or the verdict is wrong, whatever it says. */
type Opinion = 'reached' | 'missed' | 'good' | 'wrong';

/** Whether each opinion agrees with a verdict that says satisfied, and with one that does not. */
const AGREES: Readonly<Record<Opinion, { readonly ifSatisfied: boolean; readonly ifNot?: boolean }>> = {
  reached: { ifSatisfied: true, ifNot: false },
  missed: { ifSatisfied: false, ifNot: true },
  good: { ifSatisfied: true },
  wrong: { ifSatisfied: false, ifNot: false },
};

/** Records whether an annotation by a person agrees with the verdict on its run, disputes it, or decides it. */
export function disputeWrites(tenant: string, { target: { runId }, signal, actor, createdAt }: Annotation): Write[] {
  const ref = { tenant, runId };
  if (signal.kind === 'label' && signal.label === REVIEWED) return [closeDispute(ref)];
  const opinion = opinionOf(signal);
  if (opinion === undefined) return [];
  const { ifSatisfied, ifNot } = AGREES[opinion];
  const [principal, at] = [actor.principalRef, Date.parse(createdAt)];
  const about = (ofSatisfied: boolean, agrees: boolean): VerdictOpinion => ({
    ofSatisfied,
    agrees,
    principal,
    at,
  });
  return [
    noteOpinion(ref, about(true, ifSatisfied)),
    ...(ifNot === undefined ? [] : [noteOpinion(ref, about(false, ifNot))]),
    // A verdict that waits for a person is decided by whoever says whether the goal was reached.
    ...(opinion === 'reached' || opinion === 'missed'
      ? [noteDecision(ref, { satisfied: opinion === 'reached', principal, at }), callAwaiting(ref, GOAL_WORK)]
      : []),
  ];
}

/** The opinion that a signal expresses, if any. */
export function opinionOf({ kind, rating = 0, label = '' }: Annotation['signal']): Opinion | undefined {
  if (kind === 'flag') return 'missed';
  if (kind === 'label') return Object.hasOwn(LABELS, label) ? LABELS[label] : undefined;
  if (kind !== 'rating') return undefined;
  if (rating <= BAD_RATING) return 'missed';
  return rating >= GOOD_RATING ? 'good' : undefined;
}

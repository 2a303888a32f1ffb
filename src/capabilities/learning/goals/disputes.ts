import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { Write } from '../../../store/sql.ts';
import { closeDispute, noteStand, type Stand } from './records.ts';

/** A rating from this on is a yes, and one up to that is a no. */
const GOOD_RATING = 4;
const BAD_RATING = 2;

/** Labels by which people say what they think of a verdict. */
const LABELS: Readonly<Record<string, Opinion>> = {
  satisfied: 'reached',
  'not-satisfied': 'missed',
  unsatisfied: 'missed',
  'wrong-verdict': 'wrong',
  disputed: 'wrong',
};
const REVIEWED = 'reviewed';

/** That the goal was reached, that it was not, that the work was good, or that the verdict is wrong whatever it is. */
type Opinion = 'reached' | 'missed' | 'good' | 'wrong';

/** What each opinion means for a verdict in the affirmative, and for one that is not: whether it agrees. */
const AGREES: Readonly<Record<Opinion, { readonly ifSatisfied: boolean; readonly ifNot?: boolean }>> = {
  reached: { ifSatisfied: true, ifNot: false },
  missed: { ifSatisfied: false, ifNot: true },
  good: { ifSatisfied: true },
  wrong: { ifSatisfied: false, ifNot: false },
};

/** What an annotation by a person does to the verdict on the run that it is about, if there is one. */
export function standWrites(tenant: string, { target: { runId }, signal, actor, createdAt }: Annotation): Write[] {
  const ref = { tenant, runId };
  if (signal.kind === 'label' && signal.label === REVIEWED) return [closeDispute(ref)];
  const opinion = opinionOf(signal);
  if (opinion === undefined) return [];
  const { ifSatisfied, ifNot } = AGREES[opinion];
  const stand = (ofSatisfied: boolean, agrees: boolean): Stand => ({
    ofSatisfied,
    agrees,
    principal: actor.principalRef,
    at: Date.parse(createdAt),
  });
  return [
    noteStand(ref, stand(true, ifSatisfied)),
    ...(ifNot === undefined ? [] : [noteStand(ref, stand(false, ifNot))]),
  ];
}

export function opinionOf({ kind, rating = 0, label = '' }: Annotation['signal']): Opinion | undefined {
  if (kind === 'flag') return 'missed';
  if (kind === 'label') return Object.hasOwn(LABELS, label) ? LABELS[label] : undefined;
  if (kind !== 'rating') return undefined;
  if (rating <= BAD_RATING) return 'missed';
  return rating >= GOOD_RATING ? 'good' : undefined;
}

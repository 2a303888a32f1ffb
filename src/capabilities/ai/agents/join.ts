import { type Static, Type } from 'typebox';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';

/** When workers that run at the same time have done enough. */
export const JOIN_MODES = ['wait-all', 'quorum', 'first', 'race'] as const;
/** What the failure of one of them means. */
export const CHILD_FAILURE_MODES = ['collect', 'fail-fast', 'absorb'] as const;

/** How a dispatch joins workers that run at the same time. */
export const JoinPolicy = Closed({
  mode: Type.Optional(OneOf(JOIN_MODES, { default: 'wait-all' })),
  quorum: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: 'Workers that must complete, with the mode `quorum`' }),
  ),
  onChildFailure: Type.Optional(OneOf(CHILD_FAILURE_MODES, { default: 'collect' })),
});
/** A join policy as people write it. */
export type JoinPolicy = Static<typeof JoinPolicy>;

/** What came of a join. `partial`: enough, although a worker did not complete. */
type JoinOutcome = 'satisfied' | 'partial' | 'failed';

/** The end of a join, and how many workers decided it. */
export interface Join {
  readonly outcome: JoinOutcome;
  readonly counted: number;
}

/**
 * What a join has come to, by the statuses of the workers that have ended, in the order of their ends; undefined while it
 * is open. Later ends change nothing.
 */
export function joinOf(policy: JoinPolicy, total: number, ended: readonly string[]): Join | undefined {
  for (let counted = 0; counted <= ended.length; counted++) {
    const outcome = outcomeOf(policy, total, ended.slice(0, counted));
    if (outcome) return { outcome, counted };
  }
  return undefined;
}

function outcomeOf(policy: JoinPolicy, total: number, ended: readonly string[]): JoinOutcome | undefined {
  const { mode = 'wait-all', onChildFailure = 'collect' } = policy;
  const completed = ended.filter((status) => status === 'completed').length;
  const missed = ended.length - completed;
  const wanted = mode === 'quorum' ? (policy.quorum ?? 1) : Number(mode === 'first');
  if (missed > 0 && onChildFailure === 'fail-fast') return 'failed';
  const isEnough = {
    'wait-all': ended.length === total,
    quorum: completed >= wanted,
    first: completed >= wanted,
    race: ended.length > 0,
  };
  if (isEnough[mode]) return missed > 0 ? 'partial' : 'satisfied';
  return total - missed < wanted ? 'failed' : undefined;
}

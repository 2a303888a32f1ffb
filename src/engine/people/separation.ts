import type { JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { OpenInterrupt, Run } from '../run/run.ts';
import type { Resolver } from './question.ts';

/** Rules about who may not approve, how many people must, and how long it counts: separation of duties. */
export interface SeparationRules {
  /** Four eyes: whoever started or forked the run may not approve. */
  readonly excludeInitiator?: boolean;
  /** Whoever wrote a part of what is approved may not approve. */
  readonly excludeAuthors?: boolean;
  /** At least this many different people must approve, however many approvals that takes. */
  readonly minDistinctPeople?: number;
  /** For how long an approval counts, in milliseconds. */
  readonly grantTtlMs?: number;
}

/** The names of the rules, as the data of an approval has them. */
type SeparationRule = keyof SeparationRules;

/** Whether an approval has rules that need to know who votes, so that labels and tokens do not count. */
export function separatesPeople(data: { readonly [K in SeparationRule]?: unknown }): boolean {
  return data.excludeInitiator === true || data.excludeAuthors === true || data.minDistinctPeople !== undefined;
}

/** Why somebody may not approve; undefined if they may. */
export function exclusionOf(run: Run, rules: SeparationRules, by: Resolver): 'initiator' | 'author' | undefined {
  const { facts } = run;
  const initiators = facts.initiators ?? [facts.owner.principal ?? ''];
  const isOneOf = (people: Iterable<string>): boolean => {
    const names = new Set([by.principal, personOf(run, by.principal), ...(by.person === undefined ? [] : [by.person])]);
    return [...people].some((name) => names.has(name) || names.has(personOf(run, name)));
  };
  if (rules.excludeInitiator === true && isOneOf(initiators)) return 'initiator';
  return rules.excludeAuthors === true && isOneOf(run.authors) ? 'author' : undefined;
}

/** What an excluded person is told. */
export const EXCLUDED = {
  initiator: 'You started or forked this run, so somebody else has to approve it.',
  author: 'You wrote a part of what is to be approved, so somebody else has to approve it.',
} as const;

/** The person behind a voter. A label stands for a person of its own, where labels count at all. */
function personOf(run: Run, voter: string): string {
  return run.people.get(voter) ?? voter;
}

/** Records the person that the key of a principal names, once per run: the log must say which votes are one person's. */
export function identify(run: Run, nodeId: string, { principal, person = principal }: Resolver): NewEvent[] {
  if (personOf(run, principal) === person) return [];
  return [{ type: 'capstan.principal.identified', nodeId, payload: { principal, person } }];
}

/** A vote that is being cast. */
interface NewVote {
  readonly voter: string;
  /** The person that the voter's key names. */
  readonly person: string | undefined;
  readonly action: string;
  readonly at: number;
}

/** The votes that count, with a new one: the last of each person, as far as it has not expired. */
export function countedVotes(run: Run, interrupt: OpenInterrupt, vote: NewVote): Map<string, string> {
  const { votes, votedAt } = interrupt;
  const cast = [...votes]
    .filter(([voter]) => voter !== vote.voter && !isExpired(interrupt, voter, vote.at))
    .sort(([a], [b]) => (votedAt?.get(a) ?? 0) - (votedAt?.get(b) ?? 0));
  const counted = new Map(cast.map(([voter, action]) => [personOf(run, voter), action]));
  return counted.set(vote.person ?? personOf(run, vote.voter), vote.action);
}

/** The vote that somebody has cast before, unless it has expired. */
export function standingVote(interrupt: OpenInterrupt, voter: string, now: number): string | undefined {
  return isExpired(interrupt, voter, now) ? undefined : interrupt.votes.get(voter);
}

function isExpired({ data, votedAt }: OpenInterrupt, voter: string, now: number): boolean {
  const ttl = grantTtlOf(data);
  return ttl !== undefined && (votedAt?.get(voter) ?? now) + ttl <= now;
}

/** For how long an approval with this data counts, in milliseconds; undefined if for good. */
export function grantTtlOf({ grantTtlMs }: JsonObject): number | undefined {
  return typeof grantTtlMs === 'number' ? grantTtlMs : undefined;
}

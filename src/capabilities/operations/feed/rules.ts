import { own } from '../../../protocol/format/json.ts';
import type { FeedEvent } from '../../../protocol/operations/feed.ts';
import type { Scope } from '../../../protocol/trust/scopes.ts';
import type { Caller } from '../../request.ts';
import type { EntryRow, FeedRow } from './records.ts';

/** How long entries are stored, and how long a feed goes on that nobody reads. */
export const RETENTION_MS = 10 * 60 * 1_000;

/** The scope that is required to see an entry, besides the one for the feed itself. */
const SCOPES: { readonly [E in FeedEvent]: Scope | undefined } = {
  'run.created': undefined,
  'run.status': undefined,
  'run.annotated': 'feedback:read',
  'proposal.created': 'proposals:read',
  'proposal.updated': 'proposals:read',
  'proposal.activated': 'proposals:read',
  'goal.updated': 'goals:read',
  'goal.evaluated': 'goals:read',
  'goal.closed': 'goals:read',
  'inbox.changed': undefined,
  'inbox.viewers': undefined,
};

/** Whether a caller may see an entry. */
export function isVisible({ subject, scopes }: Caller, { workspace, event }: EntryRow): boolean {
  const scope = own<Scope | undefined>(SCOPES, event);
  return (subject.workspace ?? workspace) === workspace && (scope === undefined || scopes.has(scope));
}

/** A position in a feed: behind the entry with that number. */
export interface FeedPosition {
  readonly feedId: string;
  readonly number: number;
}

const POSITION = /^([0-9a-z]{1,64})\.(\d{1,15})$/;

/** The `Last-Event-ID` of a position. */
export function eventIdOf({ feedId, number }: FeedPosition): string {
  return `${feedId}.${number}`;
}

/** The position of a `Last-Event-ID`; null if the text is none of ours. */
export function positionOf(eventId: string): FeedPosition | null {
  const [, feedId, number] = POSITION.exec(eventId) ?? [];
  return feedId === undefined ? null : { feedId, number: Number(number) };
}

/** Whether every entry after a position is still stored. */
export function isCovered({ feed_id, floor, last_number }: FeedRow, { feedId, number }: FeedPosition): boolean {
  return feed_id === feedId && number >= floor && number <= last_number;
}

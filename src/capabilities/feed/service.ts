import { type Refusal, refuse } from '../../protocol/errors.ts';
import type { FeedEvent } from '../../protocol/feed.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { Append } from '../../runtime/append.ts';
import type { Visibility } from '../../store/log.ts';
import type { Unit, Write } from '../../store/sql.ts';
import { sleep } from '../../system/clock.ts';
import type { Caller, Host } from '../capability.ts';
import { Bells } from './bells.ts';
import { factsOf } from './react.ts';
import {
  type EntryRow,
  entriesAfter,
  type FeedPlace,
  type FeedRow,
  findFeed,
  insertEntry,
  keepFeed,
  lastEntry,
  listFeeds,
  setFloor,
} from './records.ts';

export type FeedService = ReturnType<typeof feedService>;

/** How long entries are kept, and a feed that nobody reads. */
export const KEPT_MS = 10 * 60 * 1_000;
const RENEW_MS = KEPT_MS / 2;
const PAGE = 500;
/** Readers look at most so often: what happens in between comes together. */
const PACE_MS = 50;
/** On a store that several hosts share a hint can be lost, so readers look now and then. */
const LOOK_EVERY_MS = 1_000;
const SETTLE_MS = 5;
const SETTLE_TRIES_MAX = 400;
/** Topic of the hints that something is new for a tenant. */
const TOPIC = 'feed';
const PLACE = /^([0-9a-z-]{1,64})\.(\d{1,15})\.(\d{1,15})$/;

/** Something that happened in a tenant: small facts, and ids to read more with. */
export interface FeedFact {
  readonly event: FeedEvent;
  readonly data: JsonObject;
}

/** What it takes to see some entries, besides the feed itself. */
const SCOPES: Partial<Record<string, 'feedback:read' | 'proposals:read' | 'goals:read'>> = {
  'run.annotated': 'feedback:read',
  'proposal.created': 'proposals:read',
  'proposal.updated': 'proposals:read',
  'proposal.activated': 'proposals:read',
  'goal.updated': 'goals:read',
  'goal.evaluated': 'goals:read',
  'goal.closed': 'goals:read',
};

/** A feed that is being read, and from where. */
export interface OpenFeed {
  readonly feedId: string;
  readonly from: FeedPlace;
}

/**
 * What happens in a tenant, for whoever watches all of it.
 *
 * E1. An entry is written in the transaction that makes it true, as long as somebody reads the tenant's feed or has
 *     read it a moment ago.
 * E2. Entries are handed out in the order of their transactions, and none before all earlier ones are over: whoever
 *     comes back to a place has missed nothing and gets nothing twice.
 */
export function feedService({ runtime }: Host) {
  const { store, clock, ids, hub } = runtime;
  const bells = new Bells(clock);
  /** Tenants that may have a feed. The one host of a store that has one owner knows them all. */
  const known = new Set<string>();

  hub.onAppend(({ identity }) => wake(identity.subject.tenant));
  hub.onHint(TOPIC, (tenant) => bells.ring(tenant));

  return {
    /** What to write along with the thing that happened. Once that is committed, `wake` shortens the wait. */
    entries: (of: Visibility, facts: readonly FeedFact[]): Write[] => entries(of, facts, clock.now()),

    reaction: (append: Append): Unit => entries(append.identity.subject, factsOf(append), append.run.updatedAt),

    wake,

    /** Opens the feed behind an entry that the reader has, or with what happens from now on. */
    async open({ subject }: Caller, lastId: string | undefined): Promise<OpenFeed | Refusal> {
      const { tenant } = subject;
      const after = lastId === undefined ? undefined : placeOf(lastId);
      if (after === null) return unknownPlace('Last-Event-ID is not one that this host gave out.');
      const feed = await begin(tenant);
      if (after && !isCovered(feed, after)) return unknownPlace('What came after this is no longer kept. Begin anew.');
      if (after) return { feedId: feed.feed_id, from: after };
      const [last] = await store.read<FeedPlace>(lastEntry(tenant));
      return { feedId: feed.feed_id, from: last ?? floorOf(feed) };
    },

    /** The entries as frames of server-sent events, for as long as the reader stays. */
    async *follow(caller: Caller, { feedId, from }: OpenFeed, signal: AbortSignal): AsyncGenerator<string> {
      const { tenant } = caller.subject;
      const bell = bells.listen(tenant, signal);
      let place = from;
      let renewAt = clock.now() + RENEW_MS;
      try {
        while (!signal.aborted) {
          const rows = await store.read<EntryRow>(entriesAfter(tenant, place, PAGE));
          const [feed] = await store.read<FeedRow>(findFeed(tenant));
          // A reader so slow that entries were forgotten before it took them has to begin anew.
          if (!feed || !isCovered(feed, { ...place, feedId })) return;
          const shown = rows.filter((row) => isVisible(caller, row));
          if (shown.length > 0) yield shown.map((row) => frame(feedId, row)).join('');
          place = rows.at(-1) ?? place;
          if (clock.now() >= renewAt) {
            renewAt = clock.now() + RENEW_MS;
            await store.commit([keepFeed(tenant, feedId, KEPT_MS)]);
          }
          if (rows.length === PAGE) continue;
          await sleep(clock, PACE_MS, signal);
          await bell.heard(store.kind === 'sqlite' ? renewAt - clock.now() : LOOK_EVERY_MS);
        }
      } finally {
        bell.stop();
      }
    },

    /** Feeds outlive the process: what happens while a reader is on its way back is kept for it. */
    async prepare(): Promise<void> {
      for (const { tenant } of await store.read<FeedRow>(listFeeds())) known.add(tenant);
    },
  };

  function entries({ tenant, workspace }: Visibility, facts: readonly FeedFact[], at: number): Write[] {
    if (store.kind === 'sqlite' && !known.has(tenant)) return [];
    return facts.map(({ event, data }) => {
      const text = JSON.stringify({ at: new Date(at).toISOString(), ...data });
      return insertEntry({ tenant, workspace, at, event, data: text });
    });
  }

  function wake(tenant: string): void {
    bells.ring(tenant);
    store.hint([`${TOPIC}:${tenant}`]);
  }

  /** The tenant's feed, once everything that happens is sure to be in it. */
  async function begin(tenant: string): Promise<FeedRow> {
    known.add(tenant);
    await store.commit([keepFeed(tenant, ids.next(''), KEPT_MS)]);
    await store.commit([setFloor(tenant)]);
    for (let tries = 1; ; tries++) {
      const [feed] = await store.read<FeedRow>(findFeed(tenant));
      if (feed?.is_settled === 1) return feed;
      if (tries === SETTLE_TRIES_MAX) throw new Error('a transaction on the store does not come to its end');
      await sleep(clock, SETTLE_MS);
    }
  }
}

function frame(feedId: string, { batch, position, event, data }: EntryRow): string {
  return `id: ${idOf(feedId, { batch, position })}\nevent: ${event}\ndata: ${data}\n\n`;
}

/** What a reader names to come back to this place. */
export function idOf(feedId: string, { batch, position }: FeedPlace): string {
  return `${feedId}.${batch}.${position}`;
}

interface NamedPlace extends FeedPlace {
  readonly feedId: string;
}

/** Null when the text names no place. */
function placeOf(id: string): NamedPlace | null {
  const [, feedId, batch, position] = PLACE.exec(id) ?? [];
  return feedId === undefined ? null : { feedId, batch: Number(batch), position: Number(position) };
}

function floorOf({ floor_batch, floor_position }: FeedRow): FeedPlace {
  return { batch: floor_batch ?? 0, position: floor_position };
}

/** Whether everything after the place is still there. */
function isCovered(feed: FeedRow, { feedId, batch, position }: NamedPlace): boolean {
  const floor = floorOf(feed);
  return feed.feed_id === feedId && (batch > floor.batch || (batch === floor.batch && position >= floor.position));
}

function isVisible({ subject, scopes }: Caller, { workspace, event }: EntryRow): boolean {
  const scope = SCOPES[event];
  return (subject.workspace ?? workspace) === workspace && (scope === undefined || scopes.has(scope));
}

function unknownPlace(message: string): Refusal {
  return refuse('validation_error', message, { field: 'Last-Event-ID' });
}

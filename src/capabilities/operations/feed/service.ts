import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import type { FeedEvent } from '../../../protocol/operations/feed.ts';
import type { Scope } from '../../../protocol/trust/scopes.ts';
import type { Append } from '../../../runtime/append.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit, Write } from '../../../store/sql.ts';
import { sleep } from '../../../system/clock.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import { Bells } from './bells.ts';
import { Numbering } from './numbering.ts';
import { factsOf } from './react.ts';
import {
  type EntryRow,
  entriesAfter,
  type FeedRow,
  findFeed,
  forgetStrays,
  insertEntry,
  keepFeed,
  listFeeds,
  noteBeginning,
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
/** How long a new feed waits for transactions that began before it. Longer ones are not ours. */
const SETTLE_MAX_MS = 1_000;
const SETTLE_MS = 5;
/** Topic of the hints that something is new for a tenant. */
const TOPIC = 'feed';
const PLACE = /^([0-9a-z]{1,64})\.(\d{1,15})$/;

/** Something that happened in a tenant: small facts, and ids to read more with. */
export interface FeedFact {
  readonly event: FeedEvent;
  readonly data: JsonObject;
}

/** The scope that it takes to see an entry, besides the one for the feed itself. */
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
};

/** A place in a feed: behind the entry with that number. */
export interface FeedPlace {
  readonly feedId: string;
  readonly number: number;
}

/**
 * What happens in a tenant, for whoever watches all of it.
 *
 * E1. An entry is written in the transaction that makes it true, as long as somebody reads the tenant's feed or has
 *     read it a moment ago.
 * E2. Entries are numbered after they are committed, one number each, and handed out by number: whoever comes back to
 *     a place has missed nothing and gets nothing twice.
 */
export function feedService({ runtime }: Host) {
  const { store, clock, ids, hub } = runtime;
  const bells = new Bells(clock);
  const numbering = new Numbering(store);
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
    async open({ subject }: Caller, lastId: string | undefined): Promise<FeedPlace | Refusal> {
      const after = lastId === undefined ? undefined : placeOf(lastId);
      if (after === null) return unknownPlace('Last-Event-ID is not one that this host gave out.');
      const feed = await begin(subject.tenant);
      if (!after) return { feedId: feed.feed_id, number: feed.last_number };
      return isCovered(feed, after) ? after : unknownPlace('What came after this is no longer kept. Begin anew.');
    },

    /** The entries as frames of server-sent events, for as long as the reader stays. */
    async *follow(caller: Caller, from: FeedPlace, signal: AbortSignal): AsyncGenerator<string> {
      const { tenant } = caller.subject;
      const bell = bells.listen(tenant, signal);
      let place = from;
      let renewAt = clock.now() + RENEW_MS;
      try {
        while (!signal.aborted) {
          await numbering.bringUpToDate(tenant);
          const rows = await store.read<EntryRow>(entriesAfter(tenant, place.number, PAGE));
          const [feed] = await store.read<FeedRow>(findFeed(tenant));
          // A reader so slow that entries were forgotten before it took them has to begin anew.
          if (!feed || !isCovered(feed, place)) return;
          const shown = rows.filter((row) => isVisible(caller, row));
          if (shown.length > 0) yield shown.map((row) => frame(place, row)).join('');
          place = { ...place, number: rows.at(-1)?.number ?? place.number };
          if (clock.now() >= renewAt) {
            renewAt = clock.now() + RENEW_MS;
            await store.commit([keepFeed(tenant, place.feedId, KEPT_MS)]);
          }
          if (rows.length === PAGE) continue;
          await sleep(clock, PACE_MS, signal);
          await bell.heard(store.isShared ? LOOK_EVERY_MS : renewAt - clock.now());
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
    if (!store.isShared && !known.has(tenant)) return [];
    return facts.map(({ event, data }) => {
      const text = JSON.stringify({ at: new Date(at).toISOString(), ...data });
      return insertEntry({ tenant, workspace, at, event, data: text });
    });
  }

  function wake(tenant: string): void {
    bells.ring(tenant);
    store.hint([`${TOPIC}:${tenant}`]);
  }

  /** The tenant's feed, up to date, once everything that happens is sure to be in it. */
  async function begin(tenant: string): Promise<FeedRow> {
    known.add(tenant);
    const giveUpAt = clock.now() + SETTLE_MAX_MS;
    await store.commit([forgetStrays(tenant), keepFeed(tenant, ids.next(''), KEPT_MS)]);
    await store.commit([noteBeginning(tenant)]);
    for (;;) {
      await numbering.bringUpToDate(tenant);
      const [feed] = await store.read<FeedRow>(findFeed(tenant));
      if (!feed) throw new Error('a feed ended as it began');
      if (feed.is_settled === 1 || clock.now() >= giveUpAt) return feed;
      await sleep(clock, SETTLE_MS);
    }
  }
}

function frame({ feedId }: FeedPlace, { number, event, data }: EntryRow): string {
  return `id: ${idOf({ feedId, number })}\nevent: ${event}\ndata: ${data}\n\n`;
}

/** What a reader names to come back to this place. */
export function idOf({ feedId, number }: FeedPlace): string {
  return `${feedId}.${number}`;
}

/** Null when the text names no place. */
function placeOf(id: string): FeedPlace | null {
  const [, feedId, number] = PLACE.exec(id) ?? [];
  return feedId === undefined ? null : { feedId, number: Number(number) };
}

/** Whether everything after the place is still there. */
function isCovered({ feed_id, floor, last_number }: FeedRow, { feedId, number }: FeedPlace): boolean {
  return feed_id === feedId && number >= floor && number <= last_number;
}

function isVisible({ subject, scopes }: Caller, { workspace, event }: EntryRow): boolean {
  const scope = own<Scope | undefined>(SCOPES, event);
  return (subject.workspace ?? workspace) === workspace && (scope === undefined || scopes.has(scope));
}

function unknownPlace(message: string): Refusal {
  return refuse('validation_error', message, { field: 'Last-Event-ID' });
}

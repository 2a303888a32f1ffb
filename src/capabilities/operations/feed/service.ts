import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { type Change, changeOf, commitOrThrow } from '../../../runtime/change.ts';
import type { HintListener } from '../../../runtime/hub.ts';
import { throughOutage } from '../../../runtime/outage.ts';
import type { Reaction } from '../../../runtime/reaction.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { sleep } from '../../../system/clock.ts';
import type { Caller } from '../../request.ts';
import type { Feed, FeedFact } from './door.ts';
import { Numbering } from './numbering.ts';
import { factsOf } from './reactions.ts';
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
import { eventIdOf, type FeedPosition, isCovered, isVisible, positionOf, RETENTION_MS } from './rules.ts';
import { Wakeups } from './wakeups.ts';

const RENEW_MS = RETENTION_MS / 2;
const PAGE = 500;
/** The shortest time between two reads of a reader; entries in between are sent together. */
const READ_EVERY_MS = 50;
/** On a shared store a hint can be lost, so readers also poll. */
const POLL_MS = 1_000;
/** How long a new feed waits for transactions that began before it. Longer ones are not ours. */
const SETTLE_MAX_MS = 1_000;
const SETTLE_POLL_MS = 5;
/** Topic of the hints that a tenant has new entries. */
const TOPIC = 'feed';

type FeedRuntime = Pick<Runtime, 'store' | 'clock' | 'ids'>;

/**
 * The feeds of all tenants.
 *
 * E1. An entry is written in the unit that makes it true, as long as somebody reads the tenant's feed or has read it
 *     recently.
 * E2. Entries are numbered after their commit and sent in the order of their numbers: a reader that comes back to a
 *     position has missed nothing and gets nothing twice.
 */
export class FeedService implements Feed {
  readonly #runtime: FeedRuntime;
  readonly #wakeups: Wakeups;
  readonly #numbering: Numbering;
  /** Tenants that may have a feed. On a store with one host the set is complete. */
  readonly #tenants = new Set<string>();

  constructor(runtime: FeedRuntime) {
    this.#runtime = runtime;
    this.#wakeups = new Wakeups(runtime.clock);
    this.#numbering = new Numbering(runtime.store);
  }

  publish(scope: Visibility, facts: readonly FeedFact[]): Change {
    return changeOf(undefined, this.entries(scope, facts), { announce: [() => this.wake(scope.tenant)] });
  }

  entries(scope: Visibility, facts: readonly FeedFact[]): Unit {
    return this.#entriesAt(scope, facts, this.#runtime.clock.now());
  }

  wake(tenant: string): void {
    this.#wakeups.wake(tenant);
    this.#runtime.store.hint([`${TOPIC}:${tenant}`]);
  }

  /** Publishes the moves of runs. */
  readonly reaction: Reaction = (append) =>
    this.#entriesAt(append.identity.subject, factsOf(append), append.run.updatedAt);

  /** Another host has new entries for a tenant. */
  readonly onHint: Readonly<Record<string, HintListener>> = { [TOPIC]: (tenant) => this.#wakeups.wake(tenant) };

  /** Feeds outlive the process: entries are stored for readers that are about to reconnect. */
  async prepare(): Promise<void> {
    for (const { tenant } of await this.#runtime.store.read<FeedRow>(listFeeds())) this.#tenants.add(tenant);
  }

  /** Where a reader starts: behind the last entry that it got, or with what happens from now on. */
  async open({ subject }: Caller, lastEventId: string | undefined): Promise<FeedPosition | Refusal> {
    const after = lastEventId === undefined ? undefined : positionOf(lastEventId);
    if (after === null) return refusePosition('Last-Event-ID was not issued by this feed. Leave it out.');
    const feed = await this.#begin(subject.tenant);
    if (!after) return { feedId: feed.feed_id, number: feed.last_number };
    return isCovered(feed, after)
      ? after
      : refusePosition(
          'The entries after this Last-Event-ID are no longer stored. Leave the header out to start from now.',
        );
  }

  /** The entries as server-sent events, for as long as the reader stays connected. */
  async *follow(caller: Caller, from: FeedPosition, signal: AbortSignal): AsyncGenerator<string> {
    const { store, clock } = this.#runtime;
    const { tenant } = caller.subject;
    const wakeup = this.#wakeups.listen(tenant, signal);
    let position = from;
    let renewAt = clock.now() + RENEW_MS;
    try {
      while (!signal.aborted) {
        const rows = await throughOutage(clock, signal, () => this.#read(tenant, position));
        // A reader so slow that entries expired before it got them has to start anew.
        if (!rows) return;
        const visible = rows.filter((row) => isVisible(caller, row));
        if (visible.length > 0) yield visible.map((row) => frame(position, row)).join('');
        position = { ...position, number: rows.at(-1)?.number ?? position.number };
        if (clock.now() >= renewAt) {
          renewAt = clock.now() + RENEW_MS;
          const renewal = [keepFeed(tenant, position.feedId, RETENTION_MS)];
          await throughOutage(clock, signal, () => commitOrThrow(store, renewal));
        }
        if (rows.length === PAGE) continue;
        await sleep(clock, READ_EVERY_MS, signal);
        await wakeup.wait(store.isShared ? POLL_MS : renewAt - clock.now());
      }
    } finally {
      wakeup.stop();
    }
  }

  #entriesAt({ tenant, workspace }: Visibility, facts: readonly FeedFact[], at: number): Unit {
    if (!this.#runtime.store.isShared && !this.#tenants.has(tenant)) return [];
    return facts.map(({ event, data }) => {
      const text = JSON.stringify({ at: new Date(at).toISOString(), ...data });
      return insertEntry({ tenant, workspace, at, event, data: text });
    });
  }

  /** A page of entries after a position; undefined if some of them have expired. */
  async #read(tenant: string, position: FeedPosition): Promise<EntryRow[] | undefined> {
    const { store } = this.#runtime;
    await this.#numbering.numberCommitted(tenant);
    const rows = await store.read<EntryRow>(entriesAfter(tenant, position.number, PAGE));
    const [feed] = await store.read<FeedRow>(findFeed(tenant));
    return feed && isCovered(feed, position) ? rows : undefined;
  }

  /** Begins or continues a tenant's feed. Returns it once every transaction that did not know of it is over. */
  async #begin(tenant: string): Promise<FeedRow> {
    const { store, clock, ids } = this.#runtime;
    this.#tenants.add(tenant);
    const giveUpAt = clock.now() + SETTLE_MAX_MS;
    await commitOrThrow(store, [forgetStrays(tenant), keepFeed(tenant, ids.next(''), RETENTION_MS)]);
    await commitOrThrow(store, [noteBeginning(tenant)]);
    for (;;) {
      await this.#numbering.numberCommitted(tenant);
      const [feed] = await store.read<FeedRow>(findFeed(tenant));
      if (!feed) throw new Error(`the feed of tenant ${tenant} ended while it began`);
      if (feed.is_settled === 1 || clock.now() >= giveUpAt) return feed;
      await sleep(clock, SETTLE_POLL_MS);
    }
  }
}

function frame({ feedId }: FeedPosition, { number, event, data }: EntryRow): string {
  return `id: ${eventIdOf({ feedId, number })}\nevent: ${event}\ndata: ${data}\n\n`;
}

function refusePosition(message: string): Refusal {
  return refuse('validation_error', message, { field: 'Last-Event-ID' });
}

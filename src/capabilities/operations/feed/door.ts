import type { JsonObject } from '../../../protocol/format/json.ts';
import type { FeedEvent } from '../../../protocol/operations/feed.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { door } from '../../capability.ts';

/** The event feed of a tenant: one stream of what happens in it, for consoles and dashboards. */
export interface Feed {
  /** Publishes facts as a part of a change: `and(change, feed.publish(subject, [{ event, data }]))`. */
  publish(scope: Visibility, facts: readonly FeedFact[]): Change;
  /** The writes alone; call `wake` after their commit. */
  entries(scope: Visibility, facts: readonly FeedFact[]): Unit;
  /** Wakes the readers of a tenant's feed, here and on other hosts. */
  wake(tenant: string): void;
}

/** The door to the feed. */
export const Feed = door<Feed>()('feed');

/** Something that happened in a tenant: a few members, and ids to read more with. */
export interface FeedFact {
  readonly event: FeedEvent;
  readonly data: JsonObject;
}

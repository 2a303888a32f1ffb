import type { Static } from 'typebox';
import type { EventPayload, EventType, RunEventDoc } from '../protocol/running/events.ts';
import type { PollReply } from '../protocol/running/runs.ts';

export type { EventPayload, EventType } from '../protocol/running/events.ts';

type Envelope = Omit<Static<typeof RunEventDoc>, 'type' | 'payload'>;

/**
 * An event of the run log: `type` decides what `payload` is, so a comparison of `type` narrows it. A newer host may send
 * types that are not listed here; ignore them.
 */
export type RunEvent<T extends EventType = EventType> = {
  [K in T]: Envelope & { readonly type: K; readonly payload: EventPayload<K> };
}[T];

/** The reply to a poll, with events of known types. */
export type PolledEvents = Omit<Static<typeof PollReply>, 'events'> & { readonly events: readonly RunEvent[] };

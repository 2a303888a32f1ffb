import type { StoredEvent } from '../../../store/log.ts';

/** Characters that are read at once: what a reader that stops reading costs in memory, unless one event has more. */
const PAGE_CHARACTERS = 65_536;
/** Events of the first page, whose length nobody knows. */
const FIRST_EVENTS = 5;

/** A part of a log. */
export interface LogPage {
  readonly events: StoredEvent[];
  /** Whether the log may have more events after these. */
  readonly isFull: boolean;
}

/** Reads so many events of a log after one. */
type ReadEvents = (after: number, limit: number) => Promise<StoredEvent[]>;

/** Reads a log in pages that are small in memory, however long its events are. */
export class LogPages {
  readonly #read: ReadEvents;
  readonly #eventsMax: number;
  /** How many events to ask for: as many as fit into a page if they are like those of the last one. */
  #events: number;

  constructor(read: ReadEvents, eventsMax: number) {
    this.#read = read;
    this.#eventsMax = eventsMax;
    this.#events = Math.min(FIRST_EVENTS, eventsMax);
  }

  /** The next events after one, at least one if there are any. */
  async after(sequence: number): Promise<LogPage> {
    const asked = this.#events;
    const found = await this.#read(sequence, asked);
    const events = firstOf(found, PAGE_CHARACTERS);
    const characters = found.reduce((sum, { body }) => sum + body.length, 0);
    const fitting = Math.floor((PAGE_CHARACTERS * found.length) / Math.max(1, characters));
    if (found.length > 0) this.#events = Math.min(this.#eventsMax, Math.max(1, fitting));
    return { events, isFull: found.length === asked || events.length < found.length };
  }
}

/** The first events, one at least, that have no more than so many characters together. */
export function firstOf(events: readonly StoredEvent[], charactersMax: number): StoredEvent[] {
  const first: StoredEvent[] = [];
  let characters = 0;
  for (const event of events) {
    characters += event.body.length;
    if (first.length > 0 && characters > charactersMax) break;
    first.push(event);
  }
  return first;
}

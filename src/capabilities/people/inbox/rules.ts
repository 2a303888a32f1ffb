import type { InboxEntry, InboxPlace } from './door.ts';

/** The position of an entry. */
export function placeOf({ createdAt, id, runId = '' }: InboxEntry): InboxPlace {
  return { at: createdAt, id, runId };
}

/** Sorts entries by position. */
export function newestFirst(one: InboxEntry, other: InboxEntry): number {
  const [a, b] = [placeOf(one), placeOf(other)];
  return b.at - a.at || descending(a.id, b.id) || descending(a.runId, b.runId);
}

function descending(a: string, b: string): number {
  return Number(a < b) - Number(a > b);
}

/** A position as the text inside a cursor. */
export function placeText(place: InboxPlace): string {
  return `${place.at}.${place.id}.${place.runId}`;
}

/** The position that a cursor holds; undefined if the text is not one. */
export function placeFrom(text: string): InboxPlace | undefined {
  const [, at, id, runId = ''] = /^(\d{1,16})\.([\w-]+)\.([\w-]*)$/.exec(text) ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id, runId };
}

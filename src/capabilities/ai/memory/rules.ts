import { MEMORY_LIMITS } from '../../../runtime/effects/memory.ts';
import { withoutEnd } from '../../../system/text-cuts.ts';

const TAG = /^[\p{L}\p{N}][\p{L}\p{N} ._:/@+-]*$/u;
const WORD = /[\p{L}\p{N}]{2,}/gu;

/** Whether a text can name a memory. One that the store cannot keep as it is might name another memory. */
export function isMemoryRef(text: string): boolean {
  if (text === '' || text.length > MEMORY_LIMITS.refCharacters) return false;
  return text.isWellFormed() && !/\p{Cc}/u.test(text) && !text.split('/').includes('..');
}

/** What is wrong with a new entry; undefined if nothing is. */
export function problemWith(content: string, tags: readonly string[]): string | undefined {
  const { contentBytes, tags: tagsMax, tagCharacters } = MEMORY_LIMITS;
  if (content.trim() === '') return 'The content is empty.';
  if (!content.isWellFormed() || content.includes('\0'))
    return 'The content contains lone surrogates or NUL characters.';
  if (Buffer.byteLength(content) > contentBytes) return `An entry has at most ${contentBytes} bytes.`;
  if (tags.length > tagsMax) return `An entry has at most ${tagsMax} tags.`;
  const misfit = tags.find((tag) => tag.length > tagCharacters || !TAG.test(tag));
  return misfit === undefined
    ? undefined
    : `A tag has at most ${tagCharacters} characters, letters and digits and " ._:/@+-".`;
}

/** A text without differences of case, space and final punctuation: entries with the same one are duplicates. */
function normalise(content: string): string {
  const text = content.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ');
  return withoutEnd(text, /[\s.!,;]/).trim();
}

/** Entries that become one. */
interface Merge<T> {
  /** The newest of the duplicates, with the tags and the longest expiry of all of them. */
  readonly kept: T;
  readonly merged: readonly T[];
}

type Mergeable = { readonly content: string; readonly tags: string; readonly expires_at: number | null };

/** Groups duplicates; `entries` are newest first. Entries without a duplicate are left out. */
export function mergesOf<T extends Mergeable>(entries: readonly T[]): Merge<T>[] {
  const groups = Map.groupBy(entries, ({ content }) => normalise(content));
  return [...groups.values()].flatMap(([newest, ...merged]) => {
    if (!newest || merged.length === 0) return [];
    const all = [newest, ...merged];
    const tags = [...new Set(all.flatMap((each) => JSON.parse(each.tags) as string[]))].slice(0, MEMORY_LIMITS.tags);
    const ends = all.map(({ expires_at }) => expires_at);
    const expires_at = ends.includes(null) ? null : Math.max(...ends.map(Number));
    return [{ kept: { ...newest, tags: JSON.stringify(tags), expires_at }, merged }];
  });
}

/** The entries that contain some of the query's words, those with the most first; ties keep their order. */
export function rank<T extends { readonly content: string; readonly tags: string }>(
  entries: readonly T[],
  query: string,
): T[] {
  const words = [...new Set(query.toLowerCase().match(WORD) ?? [])];
  const scored = entries.map((entry) => {
    const text = `${entry.content} ${entry.tags}`.toLowerCase();
    return { entry, score: words.filter((word) => text.includes(word)).length };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ entry }) => entry);
}

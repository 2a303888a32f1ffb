import { isObject } from '../../../protocol/format/json.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findEvents, type LoggedRow } from '../../../store/log.ts';
import type { CorrectedRow } from './mining-records.ts';

const EVENTS_MAX = 200;
/** Words of a change that is told as such; of longer ones the result is an example. */
const CHANGED_WORDS_MAX = 12;
const EXAMPLE_CHARS_MAX = 500;

/** What people asked for by changing something at gates, by the id of the correction. */
export async function editWishes(
  { store }: Pick<Runtime, 'store'>,
  rows: readonly CorrectedRow[],
): Promise<ReadonlyMap<string, string>> {
  const wishes = new Map<string, string>();
  for (const { annotation_id, run_id, sequence } of rows) {
    if (sequence === null) continue;
    const events = await store.read<LoggedRow>(
      findEvents([run_id], ['interrupt.requested', 'approval.received'], EVENTS_MAX),
    );
    wishes.set(annotation_id, wishAt(events, sequence));
  }
  return wishes;
}

/** The wish behind one answer to a gate: what it showed last, against what somebody made of it. */
function wishAt(events: readonly LoggedRow[], sequence: number): string {
  const read = events.filter((row) => row.sequence <= sequence);
  const decoded = read.map((row) => decodeEvent({ ...row, hidden: null }));
  const answer = decoded.at(-1);
  if (answer?.type !== 'approval.received') return '';
  const at = decoded.findLastIndex((event) => event.type === 'interrupt.requested' && event.nodeId === answer.nodeId);
  // Whoever may read proposals may not read sensitive values.
  if ([read[at], read.at(-1)].some((row) => row?.hidden != null)) return '';
  const asked = decoded[at];
  const data = asked?.type === 'interrupt.requested' && isObject(asked.payload.data) ? asked.payload.data : {};
  return changesOf(data.artifactData, answer.payload.editedArtifactData)
    .map(([before, after]) => wishOf(before, after))
    .filter((wish) => wish !== '')
    .join(' ');
}

/** Texts that were changed, each with what it was before. */
function changesOf(before: unknown, after: unknown): (readonly [string, string])[] {
  if (typeof before === 'string' && typeof after === 'string') return [[before, after]];
  if (!isObject(before)) return [];
  const texts = Object.values(before).filter((value) => typeof value === 'string');
  if (typeof after === 'string') return texts.length === 1 ? [[texts[0]!, after]] : [];
  if (!isObject(after)) return [];
  return Object.entries(before).flatMap(([key, value]) => changesOf(value, after[key]));
}

/** A change of a text as an instruction: what to write, to add or to leave out, or the whole text as an example. */
export function wishOf(before: string, after: string): string {
  const [old, now] = [wordsOf(before), wordsOf(after)];
  let [start, end] = [0, 0];
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start++;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const [removed, added] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  if (removed.length === 0 && added.length === 0) return '';
  const isSmall = Math.max(removed.length, added.length) <= CHANGED_WORDS_MAX && start + end > 0;
  if (!isSmall) return `Prefer answers like this one: ${after}`.slice(0, EXAMPLE_CHARS_MAX);
  const [gone, come] = [quoted(removed), quoted(added)];
  if (added.length === 0) return `Leave out ${gone}.`;
  if (removed.length > 0) return `Write ${come} instead of ${gone}.`;
  if (start === 0) return `Begin with ${come}.`;
  return end === 0 ? `End with ${come}.` : `Add ${come}.`;
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

function quoted(words: readonly string[]): string {
  return `"${words.join(' ').replaceAll('"', "'")}"`;
}

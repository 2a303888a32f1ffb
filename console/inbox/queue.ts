import type { InboxItem } from '../../src/protocol/people/inbox.ts';

/** The groups of the queue, in its order: what holds up a run comes first. */
const GROUPS = [
  ['Answers', ['interrupt', 'gate']],
  ['Goals', ['goal', 'dispute']],
  ['Proposals', ['proposal']],
  ['Runs to review', ['feedback', 'quarantine']],
] as const satisfies readonly (readonly [string, readonly InboxItem['kind'][]])[];

/** One group of the queue, with what has waited longest first. */
export interface QueueGroup {
  readonly title: string;
  readonly items: readonly InboxItem[];
}

/** What each kind of item is called. */
export const KIND_WORDS: Readonly<Record<InboxItem['kind'], string>> = {
  interrupt: 'Answer',
  gate: 'Gate',
  goal: 'Goal stopped',
  dispute: 'Disputed verdict',
  proposal: 'Proposal',
  feedback: 'Feedback',
  quarantine: 'Put aside',
};

/** The queue in groups. Feedback has an item for each run, but ids of different kinds may be equal. */
export function queueOf(items: readonly InboxItem[]): readonly QueueGroup[] {
  return GROUPS.map(([title, kinds]) => ({
    title,
    items: items
      .filter(({ kind }) => (kinds as readonly string[]).includes(kind))
      .toSorted((one, other) => one.createdAt.localeCompare(other.createdAt)),
  })).filter(({ items: found }) => found.length > 0);
}

/** What names an item in the address, whatever its kind. */
export function keyOf({ kind, id }: Pick<InboxItem, 'kind' | 'id'>): string {
  return `${kind}:${id}`;
}

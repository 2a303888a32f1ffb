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

/** The ids of runs begin with their time, so the end tells them apart. */
const RUN_CHARS = 6;

/** What each kind of item is called. */
const KIND_WORDS: Readonly<Record<InboxItem['kind'], string>> = {
  interrupt: 'Answer',
  gate: 'Gate',
  goal: 'Goal',
  dispute: 'Disputed verdict',
  proposal: 'Proposal',
  feedback: 'Feedback',
  quarantine: 'Quarantined',
};

/** What an item is and where it comes from: the workflow, and the node that asks. */
export function placeOf({ kind, workflowId, nodeId }: InboxItem): string {
  const place = [workflowId, nodeId].filter((part) => part !== undefined).join(' › ');
  return place === '' || workflowId === undefined ? KIND_WORDS[kind] : `${KIND_WORDS[kind]} · ${place}`;
}

/** The run of an item, by the end of its id; undefined for what belongs to no run of a person. */
export function runOf({ workflowId, runId }: InboxItem): string | undefined {
  return workflowId === undefined || runId === undefined ? undefined : `Run …${runId.slice(-RUN_CHARS)}`;
}

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

import type { InterruptRow, InterruptState } from '../../src/capabilities/people/interrupts/records.ts';
import type { Run } from '../../src/engine/run/run.ts';
import { isObject } from '../../src/protocol/format/json.ts';
import type { RunEvent } from '../../src/protocol/running/events.ts';
import type { RunRow } from '../../src/store/log.ts';
import { sql } from '../../src/store/sql.ts';
import type { Store } from '../../src/store/store.ts';

/** A run when the day is over, from every side. */
export interface Left {
  readonly row: RunRow;
  readonly run: Run;
  readonly events: readonly RunEvent[];
  readonly children: readonly RunRow[];
  readonly now: number;
}

/** What is wrong with a run that has not ended: it must wait for somebody, and cost nothing meanwhile. */
export async function problemsWithWaiting(store: Store, left: Left): Promise<string[]> {
  const { run_id: runId } = left.row;
  const [work] = await store.read<Work>(sql('SELECT owner FROM work WHERE work_id = $1', runId));
  const interrupts = await store.read<InterruptRow>(sql('SELECT * FROM interrupts WHERE run_id = $1', runId));
  return [judgeRest(left, work), judgeInterrupts(left, interrupts)].filter((problem) => problem !== undefined);
}

interface Work {
  readonly owner: string | null;
}

function judgeRest({ row, run, children }: Left, work: Work | undefined): string | undefined {
  if (row.ended_at !== null) return work && 'it has ended, and there is still work';
  const isMirror = children.some(({ status }) => status.startsWith('waiting-') || status === 'paused');
  const isLeft = row.status === 'paused' || (row.status.startsWith('waiting-') && (run.suspended.size > 0 || isMirror));
  if (!isLeft) return `it is ${row.status} and nothing moves it`;
  return work?.owner === null ? undefined : `it waits, and its work is held by ${work?.owner}`;
}

/** The log, the fold and the table agree on what was asked and what became of it; nothing is asked for too long. */
function judgeInterrupts({ run, events, now }: Left, interrupts: readonly InterruptRow[]): string | undefined {
  const told = readLog(events);
  if (typeof told === 'string') return told;
  const kept = new Map(interrupts.map(({ interrupt_id, state }) => [interrupt_id, state]));
  if (textOf(kept) !== textOf(told)) return `the table says ${textOf(kept)}, the log ${textOf(told)}`;
  const open = run.nodes.flatMap(({ interrupt }) => (interrupt ? [interrupt] : []));
  const folded = new Map(
    [...told].map(([id, state]) => [id, open.some((each) => each.interruptId === id) ? 'open' : state]),
  );
  if (textOf(folded) !== textOf(told))
    return `the fold has ${open.map(({ interruptId }) => interruptId).join(' ')} open`;
  const overdue = open.find(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt < now);
  return overdue && !run.pause ? `${overdue.interruptId} is overdue and still open` : undefined;
}

/** What became of each question, by a second reading of the log; or what makes no sense in it. */
function readLog(events: readonly RunEvent[]): Map<string, InterruptState> | string {
  const states = new Map<string, InterruptState>();
  const asking = new Map<string, string>();
  const answered = new Set<string>();
  const close = (nodeId: string, state: InterruptState): void => {
    if (asking.has(nodeId)) states.set(asking.get(nodeId)!, state);
    asking.delete(nodeId);
  };
  for (const { type, payload } of events) {
    if (type === 'node.suspended') {
      if (states.has(payload.interruptId) || asking.has(payload.nodeId)) return `${payload.nodeId} asks twice at once`;
      if (answered.has(payload.nodeId)) return `${payload.nodeId} asks again what it was told`;
      states.set(payload.interruptId, 'open');
      asking.set(payload.nodeId, payload.interruptId);
    } else if (type === 'interrupt.resolved') {
      if (asking.get(payload.nodeId) !== payload.interruptId)
        return `${payload.interruptId} is answered, and was not open`;
      close(payload.nodeId, payload.reason === 'timeout' ? 'expired' : 'resolved');
      if (!isRefinement(payload.resumeValue)) answered.add(payload.nodeId);
    } else if (type === 'node.started') {
      answered.delete(payload.nodeId);
    } else if (type === 'node.failed') {
      close(payload.nodeId, payload.error.code === 'interrupt_expired' ? 'expired' : 'gone');
    } else if (type === 'node.cancelled') close(payload.nodeId, 'gone');
  }
  return states;
}

/** Then it is asked again, by itself or by the node that a loop leads back to. */
function isRefinement(value: unknown): boolean {
  return isObject(value) && value.action === 'refine';
}

function textOf(states: ReadonlyMap<string, string>): string {
  return JSON.stringify([...states].sort(([a], [b]) => (a < b ? -1 : 1)));
}

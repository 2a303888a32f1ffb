import { isTerminalEvent } from '../../../protocol/running/events.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import type { Cancel } from '../../../system/clock.ts';
import type { LegacyHost as Host } from '../../legacy.ts';

const PAGE = 500;
/** Events that may wait for a slow reader in memory; more are read from the log again when it is ready. */
const BACKLOG_MAX = 1_000;
/** On a store that several hosts share a hint can be lost, so a follower looks at the log now and then. */
const LOOK_EVERY_MS = 1_000;

export interface Following {
  /** Sequence of the last event that the reader has. */
  readonly after: number;
  readonly signal: AbortSignal;
  /** How long to wait for the first new event before giving up; forever without it. */
  readonly patienceMs?: number;
}

/**
 * The events of a run after some sequence, in order, each once, in batches: first what the log has, then what is
 * appended. Ends with the run.
 *
 * F1. Listening begins before the log is read, so nothing falls between the two.
 * F2. Only the next sequence is ever handed out; on any doubt the log is read.
 */
export async function* follow(
  { runtime }: Pick<Host, 'runtime'>,
  row: RunRow,
  options: Following,
): AsyncGenerator<StoredEvent[]> {
  const { hub, reader, store, clock } = runtime;
  const { signal, patienceMs } = options;
  const giveUpAt = patienceMs === undefined ? Number.POSITIVE_INFINITY : clock.now() + patienceMs;
  let position = options.after;
  let live: StoredEvent[] = [];
  let isBehind = true;
  let mayBeOver = true;
  let ring: () => void = () => {};
  const stopListening = hub.follow(row.run_id, (events) => {
    if (!events || live.length > BACKLOG_MAX) isBehind = true;
    else live.push(...events);
    ring();
  });
  const onAbort = (): void => ring();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      const batch = isBehind ? await readLog() : takeLive();
      if (batch.length > 0) {
        position = batch.at(-1)!.sequence;
        yield batch;
        if (batch.some(({ type }) => isTerminalEvent(type))) return;
      } else if (!isBehind) {
        if (mayBeOver && (await isOver())) return;
        // Whoever is ahead of the log hears of no event that it lacks: only the run itself says that it is over.
        mayBeOver = position > row.sequence && position === options.after;
        if (!(await somethingNew())) return;
      }
    }
  } finally {
    stopListening();
    signal.removeEventListener('abort', onAbort);
  }

  /** The next page of the log. What was heard meanwhile is in it or follows it. */
  async function readLog(): Promise<StoredEvent[]> {
    isBehind = false;
    const events = await reader.events(row, position, PAGE);
    if (events.length === PAGE) isBehind = true;
    return events;
  }

  function takeLive(): StoredEvent[] {
    const heard = live.filter(({ sequence }) => sequence > position);
    live = [];
    const isNext = heard.every(({ sequence }, index) => sequence === position + 1 + index);
    if (isNext) return heard;
    isBehind = true;
    return [];
  }

  /** A reader may ask from beyond the end of the log; any other end comes as an event. */
  async function isOver(): Promise<boolean> {
    const now = await reader.row({ tenant: row.tenant }, row.run_id);
    return !now || (isTerminalStatus(now.status) && now.sequence <= position);
  }

  /** False when patience is at an end. */
  function somethingNew(): Promise<boolean> {
    if (live.length > 0 || isBehind || signal.aborted) return Promise.resolve(true);
    const lookAt = store.isShared ? clock.now() + LOOK_EVERY_MS : Number.POSITIVE_INFINITY;
    return new Promise((resolve) => {
      let cancel: Cancel = () => {};
      const settle = (isNew: boolean): void => {
        cancel();
        ring = () => {};
        resolve(isNew);
      };
      ring = () => settle(true);
      const wakeAt = Math.min(lookAt, giveUpAt);
      if (!Number.isFinite(wakeAt)) return;
      cancel = clock.after(Math.max(0, wakeAt - clock.now()), () => {
        isBehind = true;
        settle(wakeAt !== giveUpAt);
      });
    });
  }
}

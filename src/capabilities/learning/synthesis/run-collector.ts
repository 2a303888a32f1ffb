import type { RunEvent } from '../../../protocol/running/events.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import { decodeEvent, sequenceOf } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type LoggedRow, type RunRow, readEvents, type StoredEvent, type Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { Breaks, turnOf } from '../../../system/breaks.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import { findEventsAfter } from './mining-records.ts';
import {
  type Correction,
  type CursorRow,
  type EndPosition,
  findCursor,
  findRuns,
  findUnread,
  insertRows,
  moveCursor,
  type UnreadRun,
  WHOLE_RUN,
} from './records.ts';
import { MINED_EVENTS, type MinedFacts, minedFactsOf } from './run-facts.ts';

/** Runs in memory at a time: their inputs may be long. */
const RUNS_AT_ONCE = 50;
/** Ids that are looked for at a time: PostgreSQL goes through all runs which have not been read to find some. */
const FOUND_AT_ONCE = 2_000;
/** Events that are read at once: each of them may be long. */
const EVENTS_AT_ONCE = 500;
/** Of a run with more events only the first are read. */
const EVENTS_PER_RUN_MAX = 20_000;
const CORRECTIONS_AT_ONCE = 500;
/** How far behind the cursor reading starts: clocks differ and commits take time, so some runs appear late. */
const LATE_MS = 5 * 60 * 1_000;

/**
 * Reads runs that have ended and corrections made since the last scan, and stores the few facts that miners need, so that
 * no log is read twice.
 */
export class RunCollector {
  readonly #runtime: Pick<Runtime, 'store' | 'clock' | 'plans'>;
  readonly #feedback: Pick<Feedback, 'corrections'> | undefined;

  constructor(
    runtime: Pick<Runtime, 'store' | 'clock' | 'plans'>,
    feedback: Pick<Feedback, 'corrections'> | undefined,
  ) {
    this.#runtime = runtime;
    this.#feedback = feedback;
  }

  /** Reads for the whole tenant; returns the number of new runs that the caller may see. */
  async collect({ tenant, workspace }: Visibility, signal?: AbortSignal): Promise<number> {
    const [cursor] = await this.#runtime.store.read<CursorRow>(findCursor(tenant));
    const isSeen = (row: RunRow): boolean => workspace === undefined || row.workspace === workspace;
    const runs = await this.#readRuns(tenant, this.#since(cursor?.runs_until), isSeen, signal);
    if (this.#feedback) await this.#readCorrections(tenant, this.#since(cursor?.corrections_until), signal);
    return runs;
  }

  /** Where to read on. A clock that was wrong for a while may have moved the cursor into the future. */
  #since(until = 0): number {
    return Math.min(until, this.#runtime.clock.now()) - LATE_MS;
  }

  async #readRuns(
    tenant: string,
    since: number,
    isSeen: (row: RunRow) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const { store, clock } = this.#runtime;
    let count = 0;
    for await (const unread of this.#unreadRuns(tenant, since)) {
      if (signal?.aborted) break;
      const runIds = unread.map(({ run_id }) => run_id);
      const rows = await store.read<RunRow>(findRuns(tenant, runIds));
      await commitOrThrow(store, [
        ...(await this.#keep(rows)),
        moveCursor(tenant, { runs_until: unread.at(-1)!.ended_at, corrections_until: 0 }),
      ]);
      count += rows.filter(isSeen).length;
      // Let other work of the host run in between.
      await turnOf(clock);
    }
    return count;
  }

  /** Runs that have ended since and were not read, in the order of their end, as many at a time as memory has room for. */
  async *#unreadRuns(tenant: string, since: number): AsyncGenerator<UnreadRun[]> {
    for (let place: EndPosition = { endedAt: since, runId: '' }; ; ) {
      const found = await this.#runtime.store.read<UnreadRun>(findUnread(tenant, place, FOUND_AT_ONCE));
      for (let index = 0; index < found.length; index += RUNS_AT_ONCE) yield found.slice(index, index + RUNS_AT_ONCE);
      const last = found.at(-1);
      if (!last) return;
      place = { endedAt: last.ended_at, runId: last.run_id };
    }
  }

  async #keep(rows: readonly RunRow[]): Promise<Unit> {
    const logs = await this.#logsOf(rows.map(({ run_id }) => run_id));
    const found: MinedFacts[] = [];
    const breaks = new Breaks(this.#runtime.clock);
    for (const row of rows) {
      const plan = await this.#runtime.plans.find(row.workflow_owner, row.workflow_id, row.workflow_version);
      found.push(minedFactsOf(row, logs.get(row.run_id) ?? [], plan));
      await breaks.take();
    }
    const shapes = new Map(found.flatMap(({ shape }) => (shape ? [[shape.shape, shape]] : [])));
    return [
      ...insertRows('synthesis_shapes', [...shapes.values()]),
      ...insertRows(
        'synthesis_runs',
        found.map(({ run }) => run),
      ),
      ...insertRows(
        'synthesis_prompts',
        found.flatMap(({ prompts }) => prompts),
      ),
      ...insertRows(
        'synthesis_agents',
        found.flatMap(({ uses }) => uses),
      ),
      ...insertRows(
        'synthesis_corrections',
        found.flatMap(({ edits }) => edits),
      ),
    ];
  }

  /** The mined events of runs, without what may be long in them. */
  async #logsOf(runIds: readonly string[]): Promise<Map<string, RunEvent[]>> {
    const logs = new Map<string, RunEvent[]>();
    let after = { runId: '', sequence: 0 };
    for (let left = runIds.toSorted(); left.length > 0; ) {
      const page = findEventsAfter(left, MINED_EVENTS, after, EVENTS_AT_ONCE);
      const rows = await this.#runtime.store.read<LoggedRow>(page);
      for (const row of rows) {
        const log = logs.get(row.run_id) ?? [];
        log.push(withoutLongMembers(decodeEvent(row)));
        logs.set(row.run_id, log);
      }
      const last = rows.at(-1);
      if (!last || rows.length < EVENTS_AT_ONCE) break;
      after = { runId: last.run_id, sequence: last.sequence };
      const isRead = logs.get(last.run_id)!.length >= EVENTS_PER_RUN_MAX;
      left = left.filter((runId) => runId > last.run_id || (runId === last.run_id && !isRead));
    }
    return logs;
  }

  async #readCorrections(tenant: string, since: number, signal: AbortSignal | undefined): Promise<void> {
    const { store } = this.#runtime;
    let after = { created_at: since, annotation_id: '' };
    while (!signal?.aborted) {
      const rows = await this.#feedback!.corrections(tenant, after, CORRECTIONS_AT_ONCE);
      const last = rows.at(-1);
      if (!last) return;
      const kept: Correction[] = [];
      for (const { target, ...row } of rows) {
        const node_id = (await this.#nodeOf(tenant, row.run_id, target)) ?? WHOLE_RUN;
        kept.push({ ...row, tenant, node_id, sequence: null });
      }
      await commitOrThrow(store, [
        ...insertRows('synthesis_corrections', kept),
        moveCursor(tenant, { runs_until: 0, corrections_until: last.created_at }),
      ]);
      after = last;
    }
  }

  /** The corrected node: named by the target, or by the event that the target names. Others are of the whole run. */
  async #nodeOf(
    tenant: string,
    runId: string,
    { nodeId, eventId }: { readonly nodeId?: string; readonly eventId?: string },
  ): Promise<string | undefined> {
    if (nodeId !== undefined || eventId === undefined) return nodeId;
    const [stored] = await this.#runtime.store.read<StoredEvent>(
      readEvents({ tenant, runId }, sequenceOf(eventId) - 1, 1),
    );
    return stored && decodeEvent(stored).nodeId;
  }
}

/** An event without members that may be long and that no miner needs. */
function withoutLongMembers(event: RunEvent): RunEvent {
  if (event.type === 'agent.toolReturned') {
    const { outcome: _outcome, error: _error, ...payload } = event.payload;
    return { ...event, payload };
  }
  if (event.type === 'approval.received') {
    const { editedArtifactData: _edited, refineFeedback: _feedback, comment: _comment, ...payload } = event.payload;
    return { ...event, payload };
  }
  return event;
}

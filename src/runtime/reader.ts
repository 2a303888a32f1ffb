import { fold } from '../engine/run/fold.ts';
import type { Run } from '../engine/run/run.ts';
import {
  findRun,
  type RunRow,
  type RunWithEventRow,
  readEvents,
  readRunWithEvents,
  type StoredEvent,
  type Visibility,
} from '../store/log.ts';
import { coveredBy, DamagedLog, logSeal } from '../store/log-digest.ts';
import type { Store } from '../store/store.ts';
import { damageOf } from '../store/verify-log.ts';
import { Breaks, turnOf } from '../system/breaks.ts';
import type { Clock } from '../system/clock.ts';
import type { Watchdog } from '../system/watchdog.ts';
import { BoundedCache } from './bounded-cache.ts';
import type { Plans } from './plans.ts';
import { applyStored } from './recording.ts';
import { factsOf, type HeldRun, identityOf } from './run-row.ts';

/** Events that one query reads. */
const EVENTS_PER_PAGE = 1_000;
/** Upper bound of the events of all cached runs together. */
const CACHED_EVENTS_MAX = 20_000;
/** Weight of a cached run besides its events. */
const RUN_WEIGHT = 20;
/** A cached run keeps its plan in memory, of which so much takes as much as an event. */
const PLAN_WEIGHT_PER_EVENT = 200;
/** Runs that have ended are cached from this many events on; shorter ones are cheap to fold again. */
const ENDED_EVENTS_MIN = 100;

/** How far a run was, and events of its log, as one read found them. */
interface RunWithEvents {
  readonly status: string;
  /** The sequence of the last event, which need not be among these. */
  readonly sequence: number;
  readonly events: StoredEvent[];
}

/** Reads and folds runs, with a cache of folded runs: reading one again costs only the events appended since. */
export class RunReader {
  readonly #store: Store;
  readonly #plans: Plans;
  readonly #clock: Clock;
  readonly #watchdog: Watchdog;
  readonly #cache = new BoundedCache<string, HeldRun>(
    CACHED_EVENTS_MAX,
    ({ run }) => run.sequence + RUN_WEIGHT + Math.ceil(run.plan.weight / PLAN_WEIGHT_PER_EVENT),
  );

  constructor(store: Store, plans: Plans, clock: Clock, watchdog: Watchdog) {
    this.#watchdog = watchdog;
    this.#store = store;
    this.#plans = plans;
    this.#clock = clock;
  }

  /** The stored row of a run; undefined if the caller cannot see such a run. */
  async row(visibility: Visibility, runId: string): Promise<RunRow | undefined> {
    const [row] = await this.#store.read<RunRow>(findRun(visibility, runId));
    return row;
  }

  /** Calls `look` with a folded run. The run goes back to the cache afterwards, so `look` must not keep it. */
  async view<T>(
    visibility: Visibility,
    runId: string,
    look: (held: HeldRun, row: RunRow) => T,
  ): Promise<T | undefined> {
    const row = await this.row(visibility, runId);
    if (!row) return undefined;
    const held = await this.acquire(row);
    const result = look(held, row);
    this.release(held);
    return result;
  }

  /** Takes a folded run out of the cache. The caller owns it, and returns it once all its events are committed. */
  async acquire(row: RunRow): Promise<HeldRun> {
    const cached = this.#cache.get(row.run_id);
    if (!cached || cached.run.sequence > row.sequence) return this.load(row);
    this.#cache.delete(row.run_id);
    await this.#advance(cached, row, row.sequence);
    return cached;
  }

  /** Returns a run to the cache; its state must equal the log. */
  release(held: HeldRun): void {
    if (held.run.ended && held.run.sequence < ENDED_EVENTS_MIN) return;
    this.#cache.set(held.run.facts.runId, held);
  }

  /** Folds a run from its first event, without the cache, up to the sequence `through`. */
  async load(row: RunRow, through = row.sequence): Promise<HeldRun> {
    const plan = await this.#plans.pinned(row.workflow_owner, row.workflow_id, row.workflow_version);
    const held: HeldRun = { identity: identityOf(row), run: fold(plan, factsOf(row), []) };
    await this.#advance(held, row, through);
    return held;
  }

  async #advance({ run }: HeldRun, row: RunRow, through: number): Promise<void> {
    while (run.sequence < through) {
      const events = await this.events(row, run.sequence, Math.min(EVENTS_PER_PAGE, through - run.sequence));
      if (events.length === 0) throw new DamagedLog(row.run_id, `it ends before event ${run.sequence + 1}`);
      this.#watchdog.note('fold');
      try {
        await this.#apply(run, events, row);
      } catch (error) {
        // An event that was changed may be one that cannot be applied: then that, and not the fold, is to blame.
        const damage = await damageOf(this.#store, row);
        throw damage === undefined ? error : new DamagedLog(row.run_id, damage, { cause: error });
      }
      // Between the pages of a long log the event loop serves others.
      if (run.sequence < through) await turnOf(this.#clock);
    }
  }

  async #apply(run: Run, events: readonly StoredEvent[], row: RunRow): Promise<void> {
    const breaks = new Breaks(this.#clock);
    for (const event of events) {
      applyChecked(run, event, row);
      // Events of some runs are slow to apply.
      if (breaks.isDue) await breaks.take();
    }
  }

  /** Reads one page of stored events after a sequence. */
  events({ run_id, tenant }: RunRow, after: number, limit = EVENTS_PER_PAGE): Promise<StoredEvent[]> {
    return this.#store.read<StoredEvent>(readEvents({ tenant, runId: run_id }, after, limit));
  }

  /** Reads one page of stored events together with the state of the run; undefined if the caller cannot see it. */
  async runWithEvents(
    visibility: Visibility,
    runId: string,
    after: number,
    limit: number,
  ): Promise<RunWithEvents | undefined> {
    const rows = await this.#store.read<RunWithEventRow>(readRunWithEvents(visibility, runId, after, limit));
    if (!rows[0]) return undefined;
    const events = rows.flatMap(({ sequence, type, body, hidden }) =>
      sequence === null ? [] : [{ sequence, type, body, hidden }],
    );
    return { status: rows[0].status, sequence: rows[0].last, events };
  }
}

/** Applies a stored event. Where the digest of the log is known, it must be that of the events so far. */
function applyChecked(run: Run, event: StoredEvent, { run_id, log_seal }: RunRow): void {
  applyStored(run, event);
  if (coveredBy(log_seal) !== event.sequence || logSeal(event.sequence, run.logDigest) === log_seal) return;
  throw new DamagedLog(run_id, `an event up to ${event.sequence} was changed`);
}

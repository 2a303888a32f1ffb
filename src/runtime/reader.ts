import { apply, fold } from '../engine/run/fold.ts';
import { findRun, type RunRow, readEvents, type StoredEvent, type Visibility } from '../store/log.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { LruCache } from './lru-cache.ts';
import type { Plans } from './plans.ts';
import { decodeEvent } from './recording.ts';
import { factsOf, type HeldRun, identityOf } from './run-row.ts';

const EVENTS_PER_PAGE = 1_000;
/** Folded runs are kept as long as all of them together have fewer events than this. */
const CACHED_EVENTS_MAX = 20_000;
/** What a run weighs besides its events. */
const RUN_WEIGHT = 20;
/** A run that has ended is kept only if folding it again would be some work. */
const WORTH_KEEPING = 100;

/** Reads runs. Folding again costs only what was appended since the last time. */
export class RunReader {
  readonly #store: Store;
  readonly #plans: Plans;
  readonly #clock: Clock;
  readonly #cache = new LruCache<string, HeldRun>(CACHED_EVENTS_MAX, ({ run }) => run.sequence + RUN_WEIGHT);

  constructor(store: Store, plans: Plans, clock: Clock) {
    this.#store = store;
    this.#plans = plans;
    this.#clock = clock;
  }

  async row(visibility: Visibility, runId: string): Promise<RunRow | undefined> {
    const [row] = await this.#store.read<RunRow>(findRun(visibility, runId));
    return row;
  }

  /** Looks at a run. `look` must be done when it returns: the run it is shown belongs to the reader. */
  async view<T>(
    visibility: Visibility,
    runId: string,
    look: (held: HeldRun, row: RunRow) => T,
  ): Promise<T | undefined> {
    const row = await this.row(visibility, runId);
    if (!row) return undefined;
    const held = await this.take(row);
    const seen = look(held, row);
    this.give(held);
    return seen;
  }

  /** Hands a run over: the caller owns it, may move it on, and gives it back if it still says what the store says. */
  async take(row: RunRow): Promise<HeldRun> {
    const cached = this.#cache.get(row.run_id);
    if (!cached || cached.run.sequence > row.sequence) return this.fresh(row);
    this.#cache.delete(row.run_id);
    await this.#advance(cached, row, row.sequence);
    return cached;
  }

  give(held: HeldRun): void {
    if (held.run.ended && held.run.sequence < WORTH_KEEPING) return;
    this.#cache.set(held.run.facts.runId, held);
  }

  /** A run of one's own, folded from its first event. */
  async fresh(row: RunRow, through = row.sequence): Promise<HeldRun> {
    const plan = await this.#plans.pinned(row.workflow_owner, row.workflow_id, row.workflow_version);
    const held: HeldRun = { identity: identityOf(row), run: fold(plan, factsOf(row), []) };
    await this.#advance(held, row, through);
    return held;
  }

  async #advance({ run }: HeldRun, row: RunRow, through: number): Promise<void> {
    while (run.sequence < through) {
      const events = await this.events(row, run.sequence, Math.min(EVENTS_PER_PAGE, through - run.sequence));
      if (events.length === 0) throw new Error(`the log of ${row.run_id} ends before sequence ${through}`);
      for (const event of events) apply(run, decodeEvent(event));
      // A long log is folded a page at a time, and in between others get their turn.
      if (run.sequence < through) await new Promise<void>((resolve) => this.#clock.soon(resolve));
    }
  }

  events({ run_id, tenant }: RunRow, after: number, limit = EVENTS_PER_PAGE): Promise<StoredEvent[]> {
    return this.#store.read<StoredEvent>(readEvents({ tenant, runId: run_id }, after, limit));
  }
}

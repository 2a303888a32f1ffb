import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Row } from '../../../store/sql.ts';
import { claimTasks, findClaimable, seeWorkerTypes, type WorkerReach, type WorkerTaskRow } from './records.ts';

/** The word before the colon of hints about new tasks. */
export const TASK_HINT = 'tasks';
/** A hint may be lost, and a lease may run out: a claim that waits looks again after this time. */
const LOOK_AGAIN_MS = 1_000;
/** How often it is stored that somebody serves a type. */
const SEEN_EVERY_MS = 5_000;

/** What a claim asks for. */
interface TaskRequest {
  readonly types: readonly string[];
  readonly worker: string | null;
  readonly max: number;
  readonly leaseMs: number;
  readonly waitMs: number;
}

/** The queue of attempts as claims see it: they wait in memory, and only for hints. */
export class TaskQueue {
  readonly #runtime: Pick<Runtime, 'store' | 'clock'>;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #seen = new Map<string, number>();

  constructor(runtime: Pick<Runtime, 'store' | 'clock'>) {
    this.#runtime = runtime;
  }

  /** Called when a tenant has new tasks. */
  announce = (tenant: string): void => {
    for (const look of this.#waiting.get(tenant) ?? []) look();
  };

  /** Tells the claims of all hosts that a tenant has new tasks. */
  tell(tenant: string): void {
    this.announce(tenant);
    this.#runtime.store.hint([`${TASK_HINT}:${tenant}`]);
  }

  /** Leases tasks; waits for the first one as long as the request says. */
  async claim(reach: WorkerReach, request: TaskRequest, signal: AbortSignal): Promise<readonly WorkerTaskRow[]> {
    const { clock, store } = this.#runtime;
    const until = clock.now() + request.waitMs;
    for (;;) {
      // Registered before looking: a task that comes in between is not missed.
      const hint = this.#nextHint(reach.tenant, Math.min(until - clock.now(), LOOK_AGAIN_MS), signal);
      await this.#see(reach.tenant, request.types);
      const [found] = await store.read<Pick<WorkerTaskRow, 'task_id'>>(findClaimable(reach, request.types));
      const tasks = found && !signal.aborted ? await this.#lease(reach, request) : [];
      if (tasks.length > 0 || signal.aborted || clock.now() >= until) {
        hint.cancel();
        return tasks;
      }
      await hint.arrived;
    }
  }

  async #lease(reach: WorkerReach, { types, worker, max, leaseMs }: TaskRequest): Promise<readonly WorkerTaskRow[]> {
    const outcome = await this.#runtime.store.commit([claimTasks(reach, types, { worker, leaseMs, limit: max })]);
    return outcome.committed ? outcome.rows.flat().map(taskFrom) : [];
  }

  async #see(tenant: string, types: readonly string[]): Promise<void> {
    const now = this.#runtime.clock.now();
    const key = (typeId: string): string => `${tenant} ${typeId}`;
    const due = types.filter(
      (typeId) => (this.#seen.get(key(typeId)) ?? Number.NEGATIVE_INFINITY) <= now - SEEN_EVERY_MS,
    );
    if (due.length === 0) return;
    // Type ids come from requests: what is remembered of them must not grow for ever.
    if (this.#seen.size > SEEN_MAX) this.#seen.clear();
    for (const typeId of due) this.#seen.set(key(typeId), now);
    await commitOrThrow(this.#runtime.store, [seeWorkerTypes(tenant, due)]);
  }

  #nextHint(tenant: string, ms: number, signal: AbortSignal): { readonly arrived: Promise<void>; cancel(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const listeners = this.#waiting.get(tenant) ?? new Set();
    this.#waiting.set(tenant, listeners.add(resolve));
    const stopTimer = this.#runtime.clock.after(Math.max(0, ms), resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
    void promise.then(() => {
      stopTimer();
      listeners.delete(resolve);
      if (listeners.size === 0 && this.#waiting.get(tenant) === listeners) this.#waiting.delete(tenant);
    });
    return { arrived: promise, cancel: resolve };
  }
}

/** More types than workers of one host serve. */
const SEEN_MAX = 10_000;

/** The store gives the rows of a RETURNING untyped; they have every column of the table. */
function taskFrom(row: Row): WorkerTaskRow {
  return row as Row & WorkerTaskRow;
}

import type { Runtime } from '../../../runtime/runtime.ts';
import { ensureWork, makeDueNow } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Cancel } from '../../../system/clock.ts';
import { SEAL } from './work.ts';

/** Records of this period are sealed together. */
const BATCH_MS = 1_000;
const RETRY_MS = 1_000;

/**
 * Makes the work item of the sealer due soon after something was recorded. Otherwise it is due when the next checkpoint
 * is, so an idle log costs nothing.
 */
export class SealScheduler {
  readonly #runtime: Pick<Runtime, 'store' | 'clock' | 'hub' | 'log'>;
  #timer: Cancel | undefined;
  #isStopped = false;

  constructor(runtime: Pick<Runtime, 'store' | 'clock' | 'hub' | 'log'>) {
    this.#runtime = runtime;
  }

  /** To be called when something was recorded or is about to be. */
  sealSoon(): void {
    if (!this.#timer) this.#scheduleIn(BATCH_MS);
  }

  /** Makes the work item due at once: what was pending when the last host stopped is sealed. */
  start(): Unit {
    return [ensureWork({ workId: SEAL, kind: SEAL, tenant: '*', dueAt: 0 }), makeDueNow(SEAL)];
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.();
  }

  #scheduleIn(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#runtime.clock.after(ms, () => void this.#makeDue());
  }

  /** A worker that holds the item may have read before the record was committed, so then it is made due again. */
  async #makeDue(): Promise<void> {
    const { store, hub, log } = this.#runtime;
    this.#timer = undefined;
    try {
      const outcome = await store.commit([makeDueNow(SEAL)]);
      const isDue = outcome.committed && outcome.rows[0]!.length > 0;
      if (isDue) hub.wakeWorkers(SEAL);
      else this.sealSoon();
    } catch (error) {
      log.warn({ err: error, retryMs: RETRY_MS }, 'sealing of the audit log could not be scheduled; trying again');
      if (!this.#timer) this.#scheduleIn(RETRY_MS);
    }
  }
}

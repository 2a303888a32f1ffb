import type { WorkHandler } from '../../../runtime/executor.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { ensureWork, hasten } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Cancel } from '../../../system/clock.ts';
import { oldestTail } from './records.ts';
import { CHECKPOINT_SECONDS, type Sealer } from './sealer.ts';

export const SEAL = 'audit-seal';
/** What happens within so much time is sealed together. */
const GATHER_MS = 200;
const RETRY_MS = 1_000;
/** Before the advertised time is over: work can be late. */
const CHECKPOINT_AFTER_MS = (CHECKPOINT_SECONDS - 60) * 1_000;

/**
 * Has what was recorded sealed soon. There is one work item for the whole store, so that of many hosts one seals; it
 * comes up by itself when a checkpoint is due, and is hastened when something is recorded.
 */
export class Sealing {
  readonly #runtime: Runtime;
  #timer: Cancel | undefined;
  #isStopped = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Something was recorded, or is about to be. */
  soon(): void {
    if (!this.#timer) this.#after(GATHER_MS);
  }

  /** What was left when the last host stopped is sealed as soon as there is somebody to work. */
  start(): Unit {
    return [ensureWork({ workId: SEAL, kind: SEAL, tenant: '*', dueAt: 0 }), hasten(SEAL)];
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.();
  }

  #after(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#runtime.clock.after(ms, () => void this.#hasten());
  }

  /** Somebody who holds the item may have looked before the record was committed: then it is asked for again. */
  async #hasten(): Promise<void> {
    const { store, hub, log } = this.#runtime;
    this.#timer = undefined;
    try {
      const outcome = await store.commit([hasten(SEAL)]);
      const isTaken = outcome.committed && outcome.rows[0]!.length > 0;
      if (isTaken) hub.callToWork(SEAL);
      else this.soon();
    } catch (error) {
      log.warn({ err: error }, 'the audit log could not be sealed; trying again');
      if (!this.#timer) this.#after(RETRY_MS);
    }
  }
}

/** Seals everything, and signs for what has waited long enough. */
export function sealHandler({ store, clock }: Runtime, sealer: Sealer): WorkHandler {
  return async () => {
    await sealer.seal();
    await sealer.checkpointTails(clock.now() - CHECKPOINT_AFTER_MS);
    const [tail] = await store.read<{ since: number | null }>(oldestTail());
    return { writes: [], dueAgainAt: (tail?.since ?? clock.now()) + CHECKPOINT_AFTER_MS };
  };
}

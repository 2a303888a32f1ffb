import type { Clock } from '../system/clock.ts';
import type { CommitOutcome, Unit } from './sql.ts';

/** More units than this wait for the next transaction, so that no caller waits for a very long one. */
const GROUP_MAX = 128;

interface Waiting {
  readonly unit: Unit;
  readonly resolve: (outcome: CommitOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Outcomes in the order of the units; an Error where a unit could not be carried out at all. */
export type CommitGroup = (units: readonly Unit[]) => Promise<readonly (CommitOutcome | Error)[]>;

/** Writes that arrive while one transaction is in flight share the next one. */
export class GroupCommit {
  readonly #commitGroup: CommitGroup;
  readonly #clock: Pick<Clock, 'soon'>;
  #waiting: Waiting[] = [];
  #running = false;
  #idle: (() => void)[] = [];

  constructor(commitGroup: CommitGroup, clock: Pick<Clock, 'soon'>) {
    this.#commitGroup = commitGroup;
    this.#clock = clock;
  }

  commit(unit: Unit): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ unit, resolve, reject });
      this.#schedule();
    });
  }

  /** Settles when nothing waits to be written. */
  drained(): Promise<void> {
    if (!this.#running && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  #schedule(): void {
    if (this.#running) return;
    this.#running = true;
    this.#clock.soon(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    const group = this.#waiting.splice(0, GROUP_MAX);
    try {
      const outcomes = await this.#commitGroup(group.map(({ unit }) => unit));
      group.forEach(({ resolve, reject }, index) => {
        const outcome = outcomes[index]!;
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#running = false;
    if (this.#waiting.length > 0) this.#schedule();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }
}

import type { Clock } from '../system/clock.ts';
import { FairQueue, type WeightOf } from '../system/fair-queue.ts';

/**
 * Turns of the process among runs that have much to do at once. Only one of them continues at a time, in fair order by
 * tenant; requests and other work come in between.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'soon'>;
  readonly #waiting: FairQueue<() => void>;
  #isServing = false;

  constructor(clock: Pick<Clock, 'soon'>, weightOf?: WeightOf) {
    this.#clock = clock;
    this.#waiting = new FairQueue(weightOf);
  }

  /** Resolves when it is this tenant's turn. */
  next(tenant: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(tenant, resolve);
      if (!this.#isServing) this.#serve();
    });
  }

  #serve(): void {
    this.#isServing = true;
    this.#clock.soon(() => {
      this.#waiting.shift()?.();
      if (this.#waiting.size > 0) this.#serve();
      else this.#isServing = false;
    });
  }
}

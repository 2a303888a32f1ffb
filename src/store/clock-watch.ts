import { type Cancel, type Clock, CorrectedClock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import { sql } from './sql.ts';
import type { Store } from './store.ts';

/** How often the difference is measured again. */
const INTERVAL_MS = 5_000;
/** Questions per measurement; the one that was answered fastest counts. */
const SAMPLES = 3;
/** A smaller difference than this, beyond what the measurement leaves open, is none. */
const STEADY_MS = 5;
/** A larger difference is reported in the log and at /readyz. */
export const SKEW_REPORTED_MS = 1_000;

interface Sample {
  readonly offsetMs: number;
  readonly uncertainMs: number;
}

/**
 * Keeps a host's clock at the time of the store that it shares with others: hosts that disagree about the time would be
 * early or late with each other's delays and schedules. A store of the host's own has the host's time.
 */
export class ClockWatch {
  readonly #store: Pick<Store, 'read'>;
  readonly #log: Log;
  /** Undefined if there is nothing to put right. */
  readonly #clock: CorrectedClock | undefined;
  #cancel: Cancel = () => {};
  #isReported = false;

  constructor(store: Pick<Store, 'isShared' | 'read'>, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#store = store;
    this.#log = log;
    this.#clock = store.isShared && clock instanceof CorrectedClock ? clock : undefined;
  }

  /** By how much the store is ahead of this machine. */
  get offsetMs(): number {
    return this.#clock?.offsetMs ?? 0;
  }

  /** Measures for the first time; settles when the clock is right. */
  async start(): Promise<void> {
    if (!this.#clock) return;
    await this.#correct(this.#clock);
    this.#schedule(this.#clock);
  }

  stop(): void {
    this.#cancel();
  }

  #schedule(clock: CorrectedClock): void {
    this.#cancel = clock.after(INTERVAL_MS, () => {
      this.#schedule(clock);
      this.#correct(clock).catch((error) =>
        this.#log.warn({ err: error }, "the store's clock could not be read; trying again"),
      );
    });
  }

  async #correct(clock: CorrectedClock): Promise<void> {
    const samples: Sample[] = [];
    for (let count = 0; count < SAMPLES; count++) samples.push(await this.#sample(clock));
    const best = samples.reduce((one, other) => (other.uncertainMs < one.uncertainMs ? other : one));
    const change = Math.abs(best.offsetMs - clock.offsetMs);
    if (change > best.uncertainMs + STEADY_MS) clock.offsetMs = Math.round(best.offsetMs);
    this.#report();
  }

  /** The store's time is from somewhere between question and answer. */
  async #sample(clock: CorrectedClock): Promise<Sample> {
    const asked = clock.ownNow();
    const [row] = await this.#store.read<{ now: number }>(sql('SELECT $now AS now'));
    const uncertainMs = (clock.ownNow() - asked) / 2;
    return { offsetMs: Number(row!.now) - asked - uncertainMs, uncertainMs };
  }

  #report(): void {
    const isSkewed = Math.abs(this.offsetMs) > SKEW_REPORTED_MS;
    if (isSkewed === this.#isReported) return;
    this.#isReported = isSkewed;
    const fields = { offsetMs: this.offsetMs };
    if (isSkewed)
      this.#log.warn(fields, "this machine's clock differs from the store's, which is used; synchronize it (NTP)");
    else this.#log.info(fields, "this machine's clock agrees with the store's again");
  }
}

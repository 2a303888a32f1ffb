import type { Cancel, Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';

/** Longest pause between polls: hints can be lost and clocks can differ. */
const POLL_EVERY_MS = 1_000;

/** What polls need of a host. */
interface PollOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Looks for work; true if there might be more. */
  readonly poll: () => Promise<boolean>;
}

/** When a host looks for work: one poll at a time; a request during a poll causes another one. */
export class Polls {
  readonly #options: PollOptions;
  #polling: 'no' | 'yes' | 'again' = 'no';
  /** Resolves when the last poll has come to its end. */
  #polled: Promise<void> = Promise.resolve();
  #timer: { readonly at: number; readonly cancel: Cancel } | undefined;
  #isStopped = false;

  constructor(options: PollOptions) {
    this.#options = options;
  }

  /** Polls now. */
  now(): void {
    if (this.#polling !== 'no') {
      this.#polling = 'again';
      return;
    }
    const { poll, log, clock } = this.#options;
    this.#polling = 'yes';
    this.#polled = poll()
      .catch((error) => log.error({ err: error }, 'polling for work failed; trying again'))
      .then((mightBeMore) => {
        const again = this.#polling === 'again' || mightBeMore === true;
        this.#polling = 'no';
        if (this.#isStopped) return;
        if (again) this.now();
        else this.at(clock.now() + POLL_EVERY_MS);
      });
  }

  /** Polls at a time, unless a poll before that is planned. */
  at(time: number): void {
    if (this.#isStopped || (this.#timer && this.#timer.at <= time)) return;
    this.#timer?.cancel();
    const { clock } = this.#options;
    const cancel = clock.after(Math.max(0, time - clock.now()), () => {
      this.#timer = undefined;
      this.now();
    });
    this.#timer = { at: time, cancel };
  }

  /** Plans no more polls, and waits for the one that is under way, within limits. */
  async stop(waitMs: number): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(waitMs, resolve);
    await Promise.race([this.#polled, promise]);
    cancel();
  }
}

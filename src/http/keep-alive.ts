import type { Cancel, Clock } from '../system/clock.ts';

/** How long an event stream is silent at most; then a comment follows. */
export const KEEP_ALIVE_MS = 15_000;
/** Streams are divided among so many groups, whose comments follow each other. */
const GROUPS = 15;
/** Readers who come at once are divided among so many of them, so that their comments do not all leave at once either. */
const SPREAD = 5;
const COMMENT = ':keepalive\n\n';

/** Sends a text to one reader. */
type Send = (text: string) => void;

/** Sends comments to all event streams with one timer: one for each would add some hundred bytes to every silent stream. */
export class KeepAlive {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #groups = Array.from({ length: GROUPS }, () => new Set<Send>());
  /** The group that had its comments last. */
  #last = 0;
  #opened = 0;
  #streams = 0;
  #stop: Cancel = () => {};

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** Sends comments to a stream until it is cancelled. */
  add(send: Send): Cancel {
    const group = this.#groups[(this.#last + GROUPS - (this.#opened++ % SPREAD)) % GROUPS]!;
    group.add(send);
    if (this.#streams++ === 0) this.#schedule();
    return () => {
      if (group.delete(send) && --this.#streams === 0) this.#stop();
    };
  }

  #schedule(): void {
    this.#stop = this.#clock.after(KEEP_ALIVE_MS / GROUPS, () => {
      this.#schedule();
      this.#last = (this.#last + 1) % GROUPS;
      for (const send of this.#groups[this.#last]!) send(COMMENT);
    });
  }
}

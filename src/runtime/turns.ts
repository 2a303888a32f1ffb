import type { Clock } from '../system/clock.ts';
import { FairQueue, type WeightOf } from '../system/fair-queue.ts';

/** Pieces of work that may begin in one turn of the event loop, and the time after which no more do. */
const PIECES_PER_ROUND = 32;
const ROUND_MS = 3;

interface Piece {
  readonly tenant: string;
  readonly begin: () => void;
}

/**
 * Turns of the event loop among tenants: requests, streams and the steps of runs ask here before they begin. Who waits
 * is served in fair order by the time that each tenant's work has held the loop. Once some milliseconds are used, the
 * loop turns, so that others get a word in.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'soon' | 'now'>;
  readonly #waiting: FairQueue<Piece>;
  /** When the first piece of this round began. */
  #startedAt: number | undefined;
  /** Pieces of this round that have not had their chance yet. */
  #ahead = 0;
  #current: { readonly tenant: string; readonly since: number } | undefined;

  constructor(clock: Pick<Clock, 'soon' | 'now'>, weightOf?: WeightOf) {
    this.#clock = clock;
    this.#waiting = new FairQueue(weightOf);
  }

  /** Resolves when it is this tenant's turn. What follows without waiting for anything is charged to it. */
  next(tenant: string): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.push(tenant, { tenant, begin });
      if (this.#startedAt === undefined && this.#ahead < PIECES_PER_ROUND) this.#schedule();
    });
  }

  /** Actions of one turn of the loop follow each other, and what one of them set off is done before the next. */
  #schedule(): void {
    this.#ahead++;
    this.#clock.soon(() => this.#begin());
    this.#clock.soon(() => this.#end());
  }

  #begin(): void {
    const now = this.#clock.now();
    this.#startedAt ??= now;
    if (now - this.#startedAt >= ROUND_MS) return;
    const piece = this.#waiting.shift();
    if (!piece) return;
    this.#current = { tenant: piece.tenant, since: now };
    piece.begin();
  }

  /** Charges the piece that has just been served. The last one of a round begins the next. */
  #end(): void {
    if (this.#current) this.#waiting.charge(this.#current.tenant, this.#clock.now() - this.#current.since);
    this.#current = undefined;
    if (--this.#ahead > 0) return;
    this.#startedAt = undefined;
    for (let more = Math.min(this.#waiting.size, PIECES_PER_ROUND); more > 0; more--) this.#schedule();
  }
}

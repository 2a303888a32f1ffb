import type { Clock } from '../system/clock.ts';
import { EQUAL_WEIGHTS, FairQueue, type WeightOf } from '../system/fair-queue.ts';

/** Pieces of work that may begin in one turn of the event loop, and the time after which no more do. */
const PIECES_PER_ROUND = 32;
const ROUND_MS = 3;
/** The same while one tenant is active: nobody waits for it, and what begins in one round shares a commit. */
const ROUND_ALONE_MS = 12;
/** How long a tenant counts as active after it has asked for a turn. */
const ACTIVE_MS = 1_000;

/** Short pieces of a tenant that share a turn: together they take less than a millisecond. */
const SHARED_MAX = 16;

/** A turn that short pieces of a tenant wait for together. */
interface SharedTurn {
  readonly begun: Promise<void>;
  pieces: number;
}

/** A tenant, and when it last asked for a turn. */
interface LastRequest {
  tenant: string | undefined;
  at: number;
}

interface Piece {
  readonly tenant: string;
  readonly begin: () => void;
}

/**
 * Turns of the event loop among tenants: requests, streams and the steps of runs ask here before they begin. Who waits
 * is served in fair order by the time that each tenant's work has held the loop. Once some milliseconds are used, the
 * loop turns, so that others get a word in. While several tenants are active, each one pauses for as long as it has held
 * the loop: whoever comes next mostly finds it free, and does not wait behind work that has just begun.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'soon' | 'now' | 'after'>;
  readonly #weightOf: WeightOf;
  readonly #waiting: FairQueue<Piece>;
  /** Until when tenants that have held the loop pause. */
  readonly #pauses = new Map<string, number>();
  /** The last turn of each tenant that has room for more short pieces. */
  readonly #shared = new Map<string, SharedTurn>();
  /** The tenant that asked last. */
  #last: LastRequest = { tenant: undefined, at: Number.NEGATIVE_INFINITY };
  /** The other tenant that asked most recently. */
  #other: LastRequest = { tenant: undefined, at: Number.NEGATIVE_INFINITY };
  /** When the first piece of this round began. */
  #startedAt: number | undefined;
  /** Pieces of this round that have not had their chance to begin yet. */
  #ahead = 0;
  #current: { readonly tenant: string; readonly since: number } | undefined;

  constructor(clock: Pick<Clock, 'soon' | 'now' | 'after'>, weightOf: WeightOf = EQUAL_WEIGHTS) {
    this.#clock = clock;
    this.#weightOf = weightOf;
    this.#waiting = new FairQueue(weightOf);
  }

  /** Resolves when it is this tenant's turn. What follows without waiting for anything is charged to it. */
  next(tenant: string): Promise<void> {
    this.#noteAsked(tenant);
    return new Promise((begin) => {
      this.#waiting.push(tenant, { tenant, begin });
      if (this.#startedAt === undefined && this.#ahead < PIECES_PER_ROUND) this.#schedule(1);
    });
  }

  /**
   * The same for a piece of some microseconds, such as writing an event to one of a thousand readers: several that wait
   * have one turn. They follow each other without a pause, which also saves most of the time that the system needs to
   * wake a reader: it is awake.
   */
  shared(tenant: string): Promise<void> {
    const last = this.#shared.get(tenant);
    if (last && last.pieces < SHARED_MAX) {
      last.pieces++;
      return last.begun;
    }
    const turn: SharedTurn = {
      begun: this.next(tenant).then(() => {
        if (this.#shared.get(tenant) === turn) this.#shared.delete(tenant);
      }),
      pieces: 1,
    };
    this.#shared.set(tenant, turn);
    return turn.begun;
  }

  /** Charges a tenant for work that it did outside of a turn; within one, the turn is charged anyway. */
  charge(tenant: string, ms: number): void {
    if (this.#current?.tenant !== tenant) this.#chargeAt(tenant, ms, this.#clock.now());
  }

  #noteAsked(tenant: string): void {
    if (tenant !== this.#last.tenant) {
      [this.#last, this.#other] = [this.#other, this.#last];
      this.#last.tenant = tenant;
    }
    this.#last.at = this.#clock.now();
  }

  /**
   * Plans pieces that follow each other, so that the begin of each is the end of the one before. The last is ended by an
   * action of its own: the loop may have other things to do next, which are no part of the piece.
   */
  #schedule(pieces: number): void {
    this.#ahead += pieces;
    for (let left = pieces; left > 0; left--) this.#clock.soon(this.#beginNext);
    this.#clock.soon(this.#end);
  }

  readonly #beginNext = (): void => {
    const now = this.#clock.now();
    this.#chargeCurrent(now);
    this.#ahead--;
    this.#begin(now);
  };

  readonly #end = (): void => {
    const now = this.#clock.now();
    this.#chargeCurrent(now);
    if (this.#ahead > 0) return;
    this.#startedAt = undefined;
    this.#scheduleNext(now);
  };

  #chargeCurrent(now: number): void {
    if (this.#current) this.#chargeAt(this.#current.tenant, now - this.#current.since, now);
    this.#current = undefined;
  }

  #begin(now: number): void {
    this.#startedAt ??= now;
    if (now - this.#startedAt >= (this.#isShared(now) ? ROUND_MS : ROUND_ALONE_MS)) return;
    const piece = this.#waiting.shift((tenant) => this.#pausedUntil(tenant) <= now);
    if (!piece) return;
    this.#current = { tenant: piece.tenant, since: now };
    piece.begin();
  }

  readonly #pausedUntil = (tenant: string): number => this.#pauses.get(tenant) ?? 0;

  /** Whether more than one tenant has been active lately. */
  #isShared(now: number): boolean {
    return now - this.#other.at < ACTIVE_MS;
  }

  #chargeAt(tenant: string, ms: number, now: number): void {
    if (ms <= 0) return;
    this.#waiting.charge(tenant, ms);
    const { at } = this.#last.tenant === tenant ? this.#other : this.#last;
    if (now - at < ACTIVE_MS) this.#pauses.set(tenant, now + ms / this.#weightOf(tenant));
  }

  /** Begins the next round at once, or when the first of those that wait has paused for long enough. */
  #scheduleNext(now: number): void {
    for (const [tenant, until] of this.#pauses) if (until <= now) this.#pauses.delete(tenant);
    if (this.#waiting.size === 0) return;
    const pausedUntil = this.#pauses.size === 0 ? now : this.#waiting.minOf(this.#pausedUntil);
    if (pausedUntil > now) this.#clock.after(pausedUntil - now, () => this.#ahead === 0 && this.#schedule(1));
    else this.#schedule(Math.min(this.#waiting.size, PIECES_PER_ROUND));
  }
}

import type { CommitOutcome, Statement, Unit } from '../../src/store/sql.ts';
import { type Store, StoreFailure } from '../../src/store/store.ts';
import type { World } from './world.ts';

/** How bad a day is: probabilities, and how long things may take. */
export interface Weather {
  readonly slow: number;
  readonly slowMs: number;
  /** The store fails before it did anything, or after it did everything and before it could say so. */
  readonly lostBefore: number;
  readonly lostAfter: number;
  readonly hintLost: number;
  /** What was done at once is told so late that whoever asked has looked for it twice. */
  readonly lateReply: number;
}

export const FAIR: Weather = { slow: 0, slowMs: 0, lostBefore: 0, lostAfter: 0, hintLost: 0, lateReply: 0 };

/** Longer than two heartbeats: the search for strays is faster than such a reply. */
const LATE_MS = { min: 2_000, max: 8_000 };

/** How bad this day is going to be. */
export function forecast({ random }: World): Weather {
  return {
    lateReply: 0,
    slow: random.next() * 0.3,
    slowMs: random.between(10, 2_000),
    lostBefore: random.next() * 0.05,
    lostAfter: random.next() * 0.05,
    hintLost: random.next(),
  };
}

/** One host's way to the shared store, with everything that can go wrong on it. */
export class FaultyStore implements Store {
  /** Hosts come and go and share this store, as they share PostgreSQL; or it has one owner at a time, as SQLite has. */
  readonly isShared: boolean;
  readonly #store: Store;
  readonly #world: World;
  readonly #sendHints: (topics: readonly string[]) => void;
  readonly #listeners: ((topic: string) => void)[] = [];
  weather: Weather = FAIR;
  /** How late the reply to a unit is, where a test wants just that one late. */
  lateBy: (unit: Unit) => number = () => 0;
  /** Dead hosts hear and say nothing any more; a cut-off one has no store; of a full disk it can only read. */
  state: 'connected' | 'cut-off' | 'read-only' | 'dead' = 'connected';

  constructor(store: Store, world: World, sendHints: (topics: readonly string[]) => void, isShared = true) {
    this.isShared = isShared;
    this.#store = store;
    this.#world = world;
    this.#sendHints = sendHints;
  }

  get kind(): Store['kind'] {
    return this.#store.kind;
  }

  read<R>(statement: Statement): Promise<R[]> {
    return this.#over(() => this.#store.read<R>(statement));
  }

  async commit<R>(unit: Unit): Promise<CommitOutcome<R>> {
    const outcome = await this.#over(() => {
      if (this.state === 'read-only') throw new StoreFailure('the disk is full');
      return this.#store.commit<R>(unit);
    });
    const late = this.lateBy(unit);
    if (late > 0) await this.#world.sleep(late);
    return outcome;
  }

  hint(topics: readonly string[]): void {
    if (this.state === 'connected') this.#sendHints(topics);
  }

  onHint(listener: (topic: string) => void): void {
    this.#listeners.push(listener);
  }

  hear(topics: readonly string[]): void {
    if (this.state !== 'connected' || this.#world.random.chance(this.weather.hintLost)) return;
    this.#world.clock().after(this.#delay(), () => {
      if (this.state === 'connected')
        for (const topic of topics) for (const listener of this.#listeners) listener(topic);
    });
  }

  async reclaim(): Promise<void> {}

  async close(): Promise<void> {}

  async #over<T>(call: () => Promise<T>): Promise<T> {
    const { random } = this.#world;
    await this.#takeTime();
    if (random.chance(this.weather.lostBefore)) throw new StoreFailure('lost on the way there');
    const result = await call();
    // What the one owner's own disk has done is known to it; over a network the answer can get lost.
    await this.#takeTime({ mayLose: this.isShared });
    if (this.weather.lateReply > 0 && random.chance(this.weather.lateReply))
      await this.#world.sleep(random.between(LATE_MS.min, LATE_MS.max));
    if (random.chance(this.weather.lostAfter)) throw new StoreFailure('lost on the way back');
    return result;
  }

  async #takeTime({ mayLose }: { readonly mayLose: boolean } = { mayLose: true }): Promise<void> {
    const delay = this.#delay();
    if (delay > 0) await this.#world.sleep(delay);
    if (this.state === 'dead') await new Promise(() => {});
    if (this.state === 'cut-off' && mayLose) throw new StoreFailure('the store is away');
  }

  #delay(): number {
    const { random } = this.#world;
    return random.chance(this.weather.slow) ? random.between(1, this.weather.slowMs) : 0;
  }
}

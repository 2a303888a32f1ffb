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
}

export const FAIR: Weather = { slow: 0, slowMs: 0, lostBefore: 0, lostAfter: 0, hintLost: 0 };

/** How bad this day is going to be. */
export function forecast({ random }: World): Weather {
  return {
    slow: random.next() * 0.3,
    slowMs: random.between(10, 2_000),
    lostBefore: random.next() * 0.05,
    lostAfter: random.next() * 0.05,
    hintLost: random.next(),
  };
}

/** One host's way to the shared store, with everything that can go wrong on it. */
export class FaultyStore implements Store {
  /** Hosts come and go and share this store, as they share PostgreSQL. */
  readonly isShared = true;
  readonly #store: Store;
  readonly #world: World;
  readonly #sendHints: (topics: readonly string[]) => void;
  readonly #listeners: ((topic: string) => void)[] = [];
  weather: Weather = FAIR;
  /** Dead hosts hear and say nothing any more; a cut-off one is refused by the network. */
  state: 'connected' | 'cut-off' | 'dead' = 'connected';

  constructor(store: Store, world: World, sendHints: (topics: readonly string[]) => void) {
    this.#store = store;
    this.#world = world;
    this.#sendHints = sendHints;
  }

  read<R>(statement: Statement): Promise<R[]> {
    return this.#over(() => this.#store.read<R>(statement));
  }

  commit(unit: Unit): Promise<CommitOutcome> {
    return this.#over(() => this.#store.commit(unit));
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
    await this.#takeTime();
    if (random.chance(this.weather.lostAfter)) throw new StoreFailure('lost on the way back');
    return result;
  }

  async #takeTime(): Promise<void> {
    const delay = this.#delay();
    if (delay > 0) await this.#world.sleep(delay);
    if (this.state === 'dead') await new Promise(() => {});
    if (this.state === 'cut-off') throw new StoreFailure('the network is down');
  }

  #delay(): number {
    const { random } = this.#world;
    return random.chance(this.weather.slow) ? random.between(1, this.weather.slowMs) : 0;
  }
}

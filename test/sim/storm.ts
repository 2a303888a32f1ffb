import type { WorkKind } from '../../src/runtime/work-kind.ts';
import { openInMemory } from '../../src/store/sqlite.ts';
import { type Migration, type Store, StoreFailure } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { digits, sortableIds } from '../../src/system/ids.ts';
import { FAIR, FaultyStore, type Weather } from './faulty-store.ts';
import { createSimHost, type SimHost, type SimHostOptions } from './sim-host.ts';
import { World } from './world.ts';

/** A world of its own, what is kept in it, and what happens to its hosts. */
export interface Scene {
  readonly world: World;
  readonly store: Store;
  readonly storm: Storm;
}

/** Begins with an empty store; nothing of it is left afterwards. */
export async function inStorm(
  seed: number,
  tables: readonly Migration[],
  live: (scene: Scene) => Promise<void>,
  options?: StormOptions,
): Promise<void> {
  const world = new World(seed);
  const migrations = [...CORE_TABLES, ...tables];
  const store = await openInMemory({ clock: world.clock(), migrations });
  const storm = new Storm(world, store, options);
  try {
    await live({ world, store, storm });
  } finally {
    storm.over();
    await world.settle(store.close());
  }
}

/** What hosts are like that come up in a storm. */
interface StormOptions extends Partial<SimHostOptions> {
  /** Work that they do beyond what every host does. */
  readonly work?: (host: SimHost) => Readonly<Record<string, WorkKind>>;
}

type Act = (host: SimHost) => Promise<void>;

/** Hosts that share a store, bad weather between them, and somebody who kills them one after the other. */
export class Storm {
  readonly hosts: SimHost[] = [];
  kills = 0;
  isOn = false;
  readonly #world: World;
  readonly #store: Store;
  readonly #options: StormOptions;
  #weather: Weather = FAIR;
  #names = 0;

  constructor(world: World, store: Store, options: StormOptions = {}) {
    this.#world = world;
    this.#store = store;
    this.#options = options;
  }

  get anyHost(): SimHost {
    return this.#world.random.pick(this.hosts);
  }

  async startHost(): Promise<void> {
    const world = this.#world;
    const store = new FaultyStore(this.#store, world, (topics) => {
      for (const other of this.hosts) if (other.store !== store) other.store.hear(topics);
    });
    const chance = (): string => digits(world.random.between(0, 36 ** 5 - 1), 10);
    const { work, ...options } = this.#options;
    const host = createSimHost({
      name: `host-${this.#names++}`,
      world,
      store,
      ids: sortableIds(world.now, chance),
      probe: async () => {},
      ...options,
    });
    for (const [kind, each] of Object.entries(work?.(host) ?? {})) host.kinds.set(kind, each);
    await host.executor.start();
    store.weather = this.#weather;
    this.hosts.push(host);
  }

  /** From the first gust until what it held up can be made up for. Each acts again and again as long as it lasts. */
  async rage(acts: readonly Act[], forMs: number, recoveryMs: number): Promise<void> {
    const world = this.#world;
    this.#begin();
    const everybody = [...acts.map((act) => this.#people(act)), this.#kill()];
    await world.run(world.now() + forMs);
    this.#end();
    await world.run(world.now() + recoveryMs);
    await world.settle(Promise.all(everybody));
  }

  #begin(): void {
    const { random } = this.#world;
    this.isOn = true;
    this.#brings({
      ...FAIR,
      slow: 0.3,
      slowMs: random.between(10, 1_500),
      lostBefore: 0.05,
      lostAfter: 0.05,
      hintLost: 0.5,
    });
  }

  #end(): void {
    this.isOn = false;
    this.#brings(FAIR);
  }

  /** Nobody is left alive. */
  over(): void {
    for (const { store } of this.hosts) store.state = 'dead';
  }

  /** Kills hosts as long as it lasts; another comes up for each. */
  async #kill(): Promise<void> {
    const { random } = this.#world;
    while (this.isOn) {
      await this.#world.sleep(random.between(1_000, 8_000));
      const victim = random.pick(this.hosts);
      victim.store.state = 'dead';
      this.kills++;
      this.hosts.splice(this.hosts.indexOf(victim), 1);
      await this.startHost();
    }
  }

  /** Has somebody do one thing after the other. Whoever asks a host that dies gets no answer, and goes on. */
  async #people(act: Act): Promise<void> {
    const { random } = this.#world;
    while (this.isOn) {
      await this.#world.sleep(random.between(200, 2_000));
      void act(this.anyHost).catch((error) => {
        if (!(error instanceof StoreFailure)) throw error;
      });
    }
  }

  #brings(weather: Weather): void {
    this.#weather = weather;
    for (const { store } of this.hosts) {
      store.weather = weather;
      if (weather === FAIR) store.state = 'connected';
    }
  }
}

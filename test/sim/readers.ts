import type { Caller } from '../../src/capabilities/request.ts';
import { follow } from '../../src/capabilities/running/events/follow.ts';
import { isTerminalEvent, type RunEvent } from '../../src/protocol/running/events.ts';
import { StoreFailure } from '../../src/store/store.ts';
import type { SimHost } from './sim-host.ts';
import type { World } from './world.ts';

/** What a reader has got of a run. */
interface Seen {
  readonly runId: string;
  readonly sequences: number[];
  isEnded: boolean;
}

/** Readers who follow runs, drop off, and come back where they were. */
export class Readers {
  readonly #world: World;
  readonly #caller: Caller;
  readonly #hosts: readonly SimHost[];
  readonly #seen: Seen[] = [];
  readonly #mourners: (() => void)[] = [];

  constructor(world: World, caller: Caller, hosts: readonly SimHost[]) {
    this.#world = world;
    this.#caller = caller;
    this.#hosts = hosts;
  }

  async follow(runId: string): Promise<void> {
    const { random } = this.#world;
    const seen: Seen = { runId, sequences: [], isEnded: false };
    this.#seen.push(seen);
    while (!seen.isEnded) {
      const host = random.pick(this.#hosts);
      const controller = new AbortController();
      if (random.chance(0.7)) this.#world.clock().after(random.between(100, 20_000), () => controller.abort());
      // With its host gone, a reader's connection breaks, and it comes back elsewhere.
      await Promise.race([this.#readOn(host, seen, controller.signal), this.#deathOf(host)]);
      controller.abort();
      await this.#world.sleep(random.between(1, 500));
    }
  }

  /** A host has died. */
  mourn(): void {
    for (const mourn of this.#mourners) mourn();
  }

  /** Every event once, in order, and the end when it is there and not before. */
  problemsWith(runId: string, events: readonly RunEvent[]): string[] {
    const hasEnd = events.some(({ type }) => isTerminalEvent(type));
    return this.#seen
      .filter((seen) => seen.runId === runId)
      .flatMap(({ sequences, isEnded }) => [
        ...(sequences.every((sequence, index) => sequence === index) ? [] : [`a reader saw ${sequences.join(' ')}`]),
        ...(isEnded === hasEnd ? [] : [`a reader ${isEnded ? 'saw' : 'never saw'} the end`]),
        ...(isEnded && sequences.length !== events.length ? ['a reader was told of the end too early'] : []),
      ]);
  }

  async #readOn(host: SimHost, seen: Seen, signal: AbortSignal): Promise<void> {
    const isConnected = (): boolean => host.store.state !== 'dead' && !signal.aborted;
    try {
      const row = await host.runs.row(this.#caller, seen.runId);
      if (!row) return;
      const after = seen.sequences.at(-1) ?? -1;
      for await (const batch of follow(host.runtime, row, { after, signal })) {
        if (!isConnected()) return;
        seen.sequences.push(...batch.map(({ sequence }) => sequence));
        seen.isEnded = batch.some(({ type }) => isTerminalEvent(type));
      }
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
    }
  }

  #deathOf(host: SimHost): Promise<void> {
    return new Promise((resolve) => {
      this.#mourners.push(() => {
        if (host.store.state === 'dead') resolve();
      });
    });
  }
}

import type { Webhooks } from '../../src/capabilities/operations/webhooks/door.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import type { RunEvent } from '../../src/protocol/running/events.ts';
import { perform } from '../../src/runtime/change.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { type Egress, EgressFailure, type EgressRequest, type EgressResponse } from '../../src/system/egress.ts';
import type { World } from './world.ts';

/** Which events each of them wants. */
const WANTED: Record<string, readonly string[]> = {
  'https://ends.example/': ['run.completed', 'run.failed', 'run.cancelled'],
  'https://most.example/': ['run.started', 'node.failed', 'run.completed'],
};

interface Arrival {
  readonly url: string;
  readonly deliveryId: string;
  readonly runId: string;
  readonly sequence: number;
  /** The host was told that it arrived. */
  isAcknowledged: boolean;
}

/** Those who are delivered to: slow, and while it storms they refuse, vanish, or take something and do not say so. */
export class Receivers {
  readonly #world: World;
  readonly #isStorm: () => boolean;
  readonly #arrivals: Arrival[] = [];

  constructor(world: World, isStorm: () => boolean) {
    this.#world = world;
    this.#isStorm = isStorm;
  }

  readonly egress: Egress = {
    problemWith: () => undefined,
    check: async () => undefined,
    send: (request) => this.#receive(request),
    open: () => Promise.reject(new EgressFailure('refused', 'deliveries are sent in one piece')),
    connect: () => Promise.reject(new EgressFailure('refused', 'deliveries are sent over HTTP')),
  };

  async subscribe(runtime: Runtime, webhooks: Webhooks, caller: Caller): Promise<void> {
    for (const [url, events] of Object.entries(WANTED)) {
      const outcome = await perform(runtime, () => webhooks.register(caller, { url, events }));
      if (isRefusal(outcome)) throw new Error(outcome.message);
    }
  }

  async #receive({ url, headers, body }: EgressRequest): Promise<EgressResponse> {
    const { random } = this.#world;
    await this.#world.sleep(random.between(0, 1_000));
    if (this.#isStorm() && random.chance(0.15)) throw new EgressFailure('unreachable', 'nobody is there');
    const { runId, event } = JSON.parse(body as string) as { runId: string; event: RunEvent };
    const deliveryId = headers!['X-openwop-Delivery-Id']!;
    const arrival: Arrival = { url, deliveryId, runId, sequence: event.sequence, isAcknowledged: false };
    this.#arrivals.push(arrival);
    if (this.#isStorm() && random.chance(0.1)) throw new EgressFailure('timeout', 'it arrived, and nobody knows');
    const status = this.#isStorm() && random.chance(0.1) ? 500 : 204;
    arrival.isAcknowledged = status === 204;
    return { status, headers: {}, body: Buffer.alloc(0) };
  }

  /** What is wrong with what arrived of a run. */
  problemsWith(runId: string, events: readonly RunEvent[]): string[] {
    return Object.entries(WANTED).flatMap(([url, types]) => {
      const arrivals = this.#arrivals.filter((arrival) => arrival.url === url && arrival.runId === runId);
      const wanted = events.filter(({ type }) => types.includes(type)).map(({ sequence }) => sequence);
      return problemsOf(arrivals, wanted).map((problem) => `${url} ${problem}`);
    });
  }
}

function problemsOf(arrivals: readonly Arrival[], wanted: readonly number[]): string[] {
  const story = arrivals.map(({ sequence, isAcknowledged }) => `${sequence}${isAcknowledged ? '' : '?'}`).join(' ');
  const firstOf = (sequence: number): number => arrivals.findIndex((arrival) => arrival.sequence === sequence);
  const takenAt = (sequence: number): number =>
    arrivals.findIndex((arrival) => arrival.sequence === sequence && arrival.isAcknowledged);
  const problems: string[] = [];
  if (arrivals.some(({ sequence }) => !wanted.includes(sequence))) problems.push('got what it did not want');
  if (wanted.some((sequence) => takenAt(sequence) < 0)) problems.push('did not get everything');
  const isEarly = (sequence: number, index: number): boolean =>
    index > 0 && firstOf(sequence) >= 0 && firstOf(sequence) < takenAt(wanted[index - 1]!);
  if (wanted.some(isEarly)) problems.push('got an event before the one before it was delivered');
  const ids = new Set(arrivals.map(({ sequence, deliveryId }) => `${sequence} ${deliveryId}`));
  if (ids.size !== new Set(arrivals.map(({ sequence }) => sequence)).size) problems.push('got an event under two ids');
  return problems.map((problem) => `${problem}: wanted ${wanted.join(' ')}, got ${story}`);
}

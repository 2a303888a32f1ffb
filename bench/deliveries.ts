/** Webhooks whose receiver was slow: what each delivery costs when the receiver takes them again. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { api, untilNone } from './api.ts';
import { type Cost, costOf, type GrowthBench, growthOf, inParallel, partOf, withHost } from './growth.ts';
import type { BenchServer } from './servers.ts';

const CONCURRENCY = 32;
const WARM_UP = 100;

/** A backlog of deliveries, and one that is ten times as long. */
export const webhooks: GrowthBench = {
  name: 'webhooks',
  about: 'a backlog of webhook deliveries: cost of each, from when the receiver answers again',
  measure: (options) =>
    withHost(options, async (host) => {
      const receiver = await Receiver.open();
      try {
        await api(host, 'POST', '/v1/webhooks', { url: receiver.url, events: ['run.completed'] });
        // A receiver that has answered before gets many deliveries at once.
        await startRuns(host, WARM_UP);
        await receiver.until(WARM_UP);
        const cost = (deliveries: number): Promise<Cost> => drain(host, receiver, deliveries);
        const sizes = [partOf(options, 300), partOf(options, 3_000)] as const;
        return [await growthOf(options, { what: 'webhook deliveries', each: 'delivery', sizes, cost })];
      } finally {
        receiver.close();
      }
    }),
};

/** Lets deliveries pile up, and measures until the receiver has all of them. */
async function drain(host: BenchServer, receiver: Receiver, deliveries: number): Promise<Cost> {
  receiver.hold();
  await startRuns(host, deliveries);
  const before = receiver.count;
  return costOf(host, deliveries, async () => {
    receiver.release();
    await receiver.until(before + deliveries);
  });
}

async function startRuns(host: BenchServer, count: number): Promise<void> {
  await inParallel(count, CONCURRENCY, () => api(host, 'POST', '/v1/runs', { workflowId: 'conformance-noop' }));
  await untilNone(host, 'running');
}

/** A receiver that can keep its callers waiting. It counts the deliveries that it has acknowledged, each of them once. */
class Receiver {
  readonly #server: Server;
  readonly #seen = new Set<string>();
  #held: (() => void)[] | undefined;

  private constructor() {
    this.#server = createServer((request, response) => {
      const deliveryId = String(request.headers['x-openwop-delivery-id']);
      request.resume().on('end', () => this.#take(deliveryId, response));
    });
  }

  static async open(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  get count(): number {
    return this.#seen.size;
  }

  /** Answers nobody until `release` is called. */
  hold(): void {
    this.#held = [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const answer of held) answer();
  }

  async until(count: number): Promise<void> {
    while (this.count < count) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #take(deliveryId: string, response: ServerResponse): void {
    const answer = (): void => {
      if (response.destroyed) return;
      this.#seen.add(deliveryId);
      response.writeHead(204).end();
    };
    if (this.#held) this.#held.push(answer);
    else answer();
  }
}

/** Webhooks whose receiver kept the host waiting: what each delivery of the backlog costs. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { api, chain, register, untilNone } from './api.ts';
import {
  type Cost,
  costOf,
  type Growth,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  partOf,
  wholeCostOf,
  withHost,
} from './growth.ts';
import type { BenchServer } from './servers.ts';

const CONCURRENCY = 32;
const WARM_UP = 100;
/** Nodes of the runs whose steps are delivered: a host sends the events of one run one after the other. */
const NODES = 20;

/** A backlog of deliveries, and one that is ten times as long. */
export const webhooks: GrowthBench = {
  name: 'webhooks',
  about: 'backlogs of webhook deliveries: cost of each',
  measure: async (options) => [await growthOfDeliveries(options), await growthOfRuns(options)],
};

/** Many events of few runs wait; measured from when the receiver answers again. */
function growthOfDeliveries(options: GrowthOptions): Promise<Growth> {
  return withReceiver(options, 'node.completed', async (host, receiver) => {
    await register(host, [chain(NODES)]);
    const sizes = [partOf(options, 300), partOf(options, 3_000)] as const;
    const cost = async (deliveries: number): Promise<Cost> => {
      const runs = Math.ceil(deliveries / NODES);
      const before = receiver.count;
      receiver.hold();
      await startRuns(host, `chain-${NODES}`, runs);
      return costOf(host, runs * NODES, () => receiver.drain(before + runs * NODES));
    };
    return growthOf(options, { what: 'webhook deliveries', each: 'delivery', sizes, cost });
  });
}

/** One event of each run waits. A part of them is on its way before the receiver answers, so the runs are counted too. */
function growthOfRuns(options: GrowthOptions): Promise<Growth> {
  return withReceiver(options, 'run.completed', (host, receiver) => {
    const sizes = [partOf(options, 300), partOf(options, 3_000)] as const;
    const cost = (runs: number): Promise<Cost> =>
      wholeCostOf(host, runs, async () => {
        const before = receiver.count;
        receiver.hold();
        await startRuns(host, 'conformance-noop', runs);
        await receiver.drain(before + runs);
      });
    return growthOf(options, { what: 'runs with a webhook', each: 'run', sizes, cost });
  });
}

/** Does something with a host that delivers events of a type to a receiver which has answered before. */
function withReceiver<T>(
  options: GrowthOptions,
  event: string,
  act: (host: BenchServer, receiver: Receiver) => Promise<T>,
): Promise<T> {
  return withHost(options, async (host) => {
    const receiver = await Receiver.open();
    try {
      await api(host, 'POST', '/v1/webhooks', { url: receiver.url, events: [event] });
      await startRuns(host, 'conformance-noop', WARM_UP);
      await receiver.drain(WARM_UP);
      return await act(host, receiver);
    } finally {
      receiver.close();
    }
  });
}

async function startRuns(host: BenchServer, workflowId: string, count: number): Promise<void> {
  await inParallel(count, CONCURRENCY, () => api(host, 'POST', '/v1/runs', { workflowId }));
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

  /** Answers nobody until `drain` is called. */
  hold(): void {
    this.#held = [];
  }

  /** Answers everybody, and waits until so many deliveries have been acknowledged since it was opened. */
  async drain(count: number): Promise<void> {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const answer of held) answer();
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

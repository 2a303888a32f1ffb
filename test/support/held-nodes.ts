import type { ServerResponse } from 'node:http';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { fixed, node } from './definitions.ts';
import { Receiver } from './receiver.ts';

/** Nodes that are at work until a test lets them go, however long that takes: they ask a server that waits with its answer. */
export class HeldNodes {
  readonly #receiver: Receiver;
  readonly #free = new Set<string>();
  readonly #waiting: { readonly path: string; readonly response: ServerResponse }[] = [];

  private constructor(receiver: Receiver) {
    this.#receiver = receiver;
    receiver.say(({ path }, response) => {
      if (this.#free.has(path)) return 204;
      this.#waiting.push({ path, response });
      return undefined;
    });
  }

  static async open(): Promise<HeldNodes> {
    return new HeldNodes(await Receiver.open());
  }

  /** A node of this id, to be let go by this name. */
  node(id: string, name: string): WorkflowNode {
    return node(id, 'core.openwop.http.fetch', {
      config: { url: `${this.#receiver.url}/${name}`, method: 'POST' },
      inputs: { body: fixed({}) },
    });
  }

  /** Settles when the node is at work. */
  atWork(name: string): Promise<void> {
    return this.#receiver.until((arrivals) => arrivals.some(({ path }) => path === pathOf(name)));
  }

  /** Its attempt that is at work comes to its end, and so do later ones. */
  letGo(name: string): void {
    this.#free.add(pathOf(name));
    for (const { path, response } of this.#waiting) if (path === pathOf(name)) response.writeHead(204).end();
  }

  close(): void {
    this.#receiver.close();
  }
}

const pathOf = (name: string): string => `/hook/${name}`;

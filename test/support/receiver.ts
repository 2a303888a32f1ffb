import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Answer } from './api.ts';
import { recorder } from './recorder/recorder.ts';

/** A request as it arrived. */
export interface Arrival {
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
  /** The body as JSON; undefined if it is none, such as that of a GET. */
  readonly body: Answer['body'];
  readonly path: string;
  readonly at: number;
}

/** What to say to a request: a status, or something of one's own, or nothing at all. */
export type Say = (arrival: Arrival, response: ServerResponse) => number | undefined;

const PATIENCE_MS = 30_000;

function jsonOf(raw: string): Answer['body'] {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

/** Somebody who is delivered to: takes down what arrives and answers as told. */
export class Receiver {
  readonly arrivals: Arrival[] = [];
  readonly #server: Server;
  #say: Say = () => 204;
  #change = Promise.withResolvers<void>();

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const raw = Buffer.concat(chunks).toString('utf8');
      const { headers, url = '' } = request;
      const arrival = { headers, raw, body: jsonOf(raw), path: url, at: Date.now() };
      this.arrivals.push(arrival);
      if (headers['x-openwop-webhook-id'] !== undefined) recorder.delivery(arrival.body.event);
      const status = this.#say(arrival, response);
      if (status !== undefined) response.writeHead(status).end();
      this.#change.resolve();
      this.#change = Promise.withResolvers();
    });
  }

  static async open(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  say(say: Say): void {
    this.#say = say;
  }

  /** Settles when what arrived so far is enough. Several tests can wait at the same time. */
  async until(isEnough: (arrivals: readonly Arrival[]) => boolean): Promise<void> {
    const { promise: isLate, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`not enough arrived: ${this.arrivals.map(({ raw }) => raw).join('\n')}`)),
      PATIENCE_MS,
    );
    try {
      while (!isEnough(this.arrivals)) await Promise.race([this.#change.promise, isLate]);
    } finally {
      clearTimeout(timer);
    }
  }

  count(count: number): Promise<void> {
    return this.until((arrivals) => arrivals.length >= count);
  }

  /** Takes no more connections and drops those that are open. */
  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** The signature as a receiver computes it, from what arrived and the secret alone. */
export function signatureOf({ headers, raw }: Arrival, secret: string): string {
  const timestamp = headers['x-openwop-timestamp'];
  return `sha256=${createHmac('sha256', secret).update(`${timestamp}.${raw}`, 'utf8').digest('hex')}`;
}

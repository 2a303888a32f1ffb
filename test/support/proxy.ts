import { connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between a host and its database, so that the database can go away and come back. */
export class DatabaseProxy {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  readonly #answering = new Set<Socket>();
  readonly #server: Server;
  readonly #allowances: number[] = [];
  #port = 0;
  #connections = 0;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((inside) => this.#join(inside));
  }

  static async open(targetUrl: string): Promise<DatabaseProxy> {
    const proxy = new DatabaseProxy(new URL(targetUrl));
    await proxy.restore();
    return proxy;
  }

  /** The target's address, by way of this. */
  get url(): string {
    const url = new URL(this.#target);
    url.port = String(this.#port);
    return url.href;
  }

  /** Drops every connection; new ones are taken. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Keeps back what the database says, until it is let through; what it is told still arrives. */
  holdAnswers(): () => void {
    const held = [...this.#answering];
    for (const socket of held) socket.pause();
    return () => {
      for (const socket of held) socket.resume();
    };
  }

  /** Drops each of the next connections after so many bytes of an answer. */
  dropAfter(bytes: readonly number[]): void {
    this.#allowances.push(...bytes);
  }

  /** How many connections were made so far. */
  get connections(): number {
    return this.#connections;
  }

  /** How many are still to be dropped. */
  get dropsLeft(): number {
    return this.#allowances.length;
  }

  /** Drops every connection and takes no new ones. */
  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.drop();
    await closed;
  }

  async restore(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as { port: number }).port;
  }

  #join(inside: Socket): void {
    const outside = connect(Number(this.#target.port), this.#target.hostname);
    this.#connections++;
    const allowance = this.#allowances.shift();
    this.#answering.add(outside);
    outside.on('close', () => this.#answering.delete(outside));
    inside.pipe(outside);
    if (allowance === undefined) outside.pipe(inside);
    else passOn(allowance, outside, inside);
    for (const [one, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }
}

/** Hands the first bytes on and then drops the connection, wherever in an answer that is. */
function passOn(bytes: number, from: Socket, to: Socket): void {
  let left = bytes;
  from.on('data', (chunk: Buffer) => {
    if (left <= 0) return;
    const part = chunk.subarray(0, left);
    left -= part.length;
    if (left > 0) to.write(part);
    else to.end(part, () => to.destroy());
  });
}

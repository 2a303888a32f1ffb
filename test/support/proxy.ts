import { connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between a host and its database, so that the database can go away and come back. */
export class DatabaseProxy {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #port = 0;

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
    for (const [one, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      this.#sockets.add(one);
      one.pipe(other);
      one.on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }
}

import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * Behaves like PgBouncer in transaction mode: many clients share a few sessions of the server, and each transaction gets
 * another session than the one before. Whoever relies on its session finds somebody else's.
 */

const SESSIONS = 3;
/** Requests that are not followed by a type byte, and the answers to them. */
const SSL_REQUEST = 80_877_103;
/** A process that no session of the server has. */
const OWN_PROCESS = 0x7fff_fff0;

interface Message {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Cuts what arrives into messages. */
class Messages {
  #rest: Buffer = Buffer.alloc(0);
  /** The first message of a client has no type. */
  #hasType: boolean;

  constructor(hasType: boolean) {
    this.#hasType = hasType;
  }

  *of(chunk: Buffer): Generator<Message> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const offset = this.#hasType ? 1 : 0;
      if (this.#rest.length < offset + 4) return;
      const length = offset + this.#rest.readInt32BE(offset);
      if (this.#rest.length < length) return;
      const bytes = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      const isSslRequest = !this.#hasType && bytes.readInt32BE(4) === SSL_REQUEST;
      yield { type: this.#hasType ? String.fromCharCode(bytes[0]!) : isSslRequest ? 'ssl' : 'startup', bytes };
      if (!isSslRequest) this.#hasType = true;
    }
  }
}

const message = (type: string, body: Buffer): Buffer => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type, 'latin1'), length, body]);
};
const integers = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => void bytes.writeInt32BE(value, index * 4));
  return bytes;
};
const texts = (...values: string[]): Buffer => Buffer.from(values.map((value) => `${value}\0`).join(''));

/** A session of the server, and the client that has it now. */
interface Session {
  readonly socket: Socket;
  client: Client | undefined;
}

interface Client {
  readonly socket: Socket;
  session: Session | undefined;
  /** Requests that the server has not finished yet. */
  unfinished: number;
  /** What waits for a session. */
  waiting: Buffer[];
}

export class TransactionPooler {
  /** How many transactions were given a session. */
  transactions = 0;
  readonly #target: URL;
  readonly #server: Server;
  readonly #free: Session[] = [];
  readonly #queue: Client[] = [];
  readonly #sockets = new Set<Socket>();
  #port = 0;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async open(targetUrl: string): Promise<TransactionPooler> {
    const pooler = new TransactionPooler(new URL(targetUrl));
    for (let count = 0; count < SESSIONS; count++) pooler.#free.push(await pooler.#login());
    await new Promise<void>((resolve) => pooler.#server.listen(0, '127.0.0.1', resolve));
    pooler.#port = (pooler.#server.address() as { port: number }).port;
    return pooler;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String(this.#port);
    return url.href;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    return socket;
  }

  /** Opens a session of the server, whose password is sent as it is. */
  #login(): Promise<Session> {
    const { hostname, port, username, password, pathname } = this.#target;
    const socket = this.#keep(connect(Number(port), hostname));
    const parameters = texts('user', username, 'database', pathname.slice(1), 'client_encoding', 'UTF8', '');
    socket.write(Buffer.concat([integers(parameters.length + 8, 196_608), parameters]));
    const session: Session = { socket, client: undefined };
    const messages = new Messages(true);
    return new Promise((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        for (const { type, bytes } of messages.of(chunk)) {
          if (type === 'R' && bytes.readInt32BE(5) === 3) socket.write(message('p', texts(password)));
          else if (session.client) this.#answer(session, session.client, type, bytes);
          else if (type === 'Z') resolve(session);
        }
      });
    });
  }

  #accept(socket: Socket): void {
    this.#keep(socket);
    const client: Client = { socket, session: undefined, unfinished: 0, waiting: [] };
    const messages = new Messages(false);
    socket.on('data', (chunk: Buffer) => {
      for (const { type, bytes } of messages.of(chunk)) this.#ask(client, type, bytes);
    });
    // PgBouncer closes the session, too: nobody knows what it was doing.
    socket.on('close', () => client.session?.socket.destroy());
  }

  #ask(client: Client, type: string, bytes: Buffer): void {
    if (type === 'ssl') client.socket.write('N');
    else if (type === 'startup') client.socket.write(welcome());
    else if (type === 'X') client.socket.end();
    else {
      if (type === 'S' || type === 'Q') client.unfinished++;
      client.waiting.push(bytes);
      if (!client.session && !this.#queue.includes(client)) this.#queue.push(client);
      this.#assign();
      if (client.session) for (const each of client.waiting.splice(0)) client.session.socket.write(each);
    }
  }

  /** Gives free sessions to those who wait: always the one that has been free for longest. */
  #assign(): void {
    while (this.#queue.length > 0 && this.#free.length > 0) {
      const client = this.#queue.shift()!;
      const session = this.#free.shift()!;
      this.transactions++;
      client.session = session;
      session.client = client;
      for (const each of client.waiting.splice(0)) session.socket.write(each);
    }
  }

  #answer(session: Session, client: Client, type: string, bytes: Buffer): void {
    client.socket.write(bytes);
    if (type !== 'Z') return;
    client.unfinished--;
    const isIdle = bytes[5] === 'I'.charCodeAt(0);
    if (!isIdle || client.unfinished > 0) return;
    client.session = undefined;
    session.client = undefined;
    this.#free.push(session);
    this.#assign();
  }
}

function welcome(): Buffer {
  return Buffer.concat([
    message('R', integers(0)),
    message('S', texts('server_version', '18.0')),
    message('S', texts('client_encoding', 'UTF8')),
    message('K', integers(OWN_PROCESS, 1)),
    message('Z', Buffer.from('I')),
  ]);
}

import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { LivePieces } from '../capabilities/request.ts';
import { type Cancel, type Clock, withTimeout } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import { wholeEnd } from '../system/text-cuts.ts';
import { KeepAlive } from './keep-alive.ts';

/** How long readers wait before they connect again. It follows a comment, so that nobody takes it for an event. */
const RECONNECT = ':\nretry: 1000\n\n';
/**
 * What is handed to a connection at once; more waits until its caller has read. As ASCII and with the length of its chunk
 * it is below 16,384 bytes: what is longer is copied to the heap first, and 3 kB of it stay with every stream.
 */
const PIECE_CHARACTERS = 16_000;

/** What streams are sent with. */
interface StreamOptions {
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  /** A stream is cut if its caller reads nothing for so long. */
  readonly unreadMs: number;
}

/** How one stream is sent. */
interface Sending {
  /** Aborted when the caller has disconnected, or when the host stops. */
  readonly signal: AbortSignal;
  /** Waits for the caller's turn, before each chunk of a stream that does not do so by itself. */
  readonly turn?: (() => Promise<void>) | undefined;
}

/** Sends answers whose text comes in chunks. */
export class Streams {
  readonly #options: StreamOptions;
  readonly #keepAlive: KeepAlive;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#keepAlive = new KeepAlive(options.clock);
  }

  /** Begins a stream. Event streams get keep-alive comments. */
  begin(reply: FastifyReply, chunks: AsyncIterable<string>, sending: Sending): void {
    reply.hijack();
    const { raw } = reply;
    const isEventStream = reply.getHeader('content-type') === 'text/event-stream';
    raw.writeHead(reply.statusCode, reply.getHeaders() as Record<string, string>);
    raw.flushHeaders();
    if (isEventStream) write(raw, RECONNECT);
    const keepAlive = isEventStream ? this.#keepAlive : undefined;
    new Sender(raw, chunks[Symbol.asyncIterator](), { ...this.#options, ...sending, keepAlive }).begin();
  }
}

/** All that one stream is sent with. */
interface SenderOptions extends StreamOptions, Sending {
  readonly keepAlive: KeepAlive | undefined;
}

/**
 * Sends one stream. Nobody waits for its end, because whoever did would be kept in memory with all that it knows; and
 * while nothing comes, nothing waits here either, if its pieces are live.
 */
class Sender {
  readonly #raw: ServerResponse;
  readonly #coming: AsyncIterator<string>;
  readonly #options: SenderOptions;
  readonly #stopKeepAlive: Cancel | undefined;

  constructor(raw: ServerResponse, coming: AsyncIterator<string>, options: SenderOptions) {
    this.#raw = raw;
    this.#coming = coming;
    this.#options = options;
    this.#stopKeepAlive = options.keepAlive?.add((comment) => write(raw, comment));
  }

  begin(): void {
    void this.#sendOn();
  }

  /** Sends what was taken and not sent yet, then chunks as they come: to the end, or until live pieces tell of more. */
  async #sendOn(rest?: string): Promise<void> {
    let last: Sent = 'broken';
    try {
      last = rest === undefined ? await this.#sendNext(await this.#coming.next()) : await this.#sendRest(rest);
      while (last === 'more' && !isLive(this.#coming)) last = await this.#sendNext(await this.#coming.next());
    } catch (error) {
      this.#warn(error);
    }
    if (last === 'more' && isLive(this.#coming)) this.#coming.whenMore(this.#sendLive);
    else this.#end(last);
  }

  /** Sends a chunk. In a function of its own, so that nobody keeps the chunk while the next one is waited for. */
  async #sendNext({ done, value: chunk }: IteratorResult<string, unknown>): Promise<Sent> {
    const { signal, turn } = this.#options;
    if (done) return signal.aborted ? 'gone' : 'whole';
    if (turn) await turn();
    const rest = this.#write(chunk);
    return rest === undefined ? this.#sent : this.#sendRest(rest);
  }

  /**
   * Sends the rest of a chunk when the caller has read what was sent before. A caller that stops reading is cut off, so
   * that nothing is kept for it: it can continue from the last event that it has.
   */
  async #sendRest(chunk: string): Promise<Sent> {
    const { clock, unreadMs } = this.#options;
    for (let rest: string | undefined = chunk; rest !== undefined; rest = this.#write(rest)) {
      if (!(await withTimeout(clock, unreadMs, drained(this.#raw)))) return 'unread';
    }
    return this.#sent;
  }

  readonly #sendLive = (): void => {
    const live = this.#coming as LivePieces;
    try {
      const chunk = live.takeNow();
      const rest = chunk === undefined ? undefined : this.#write(chunk);
      if (chunk === undefined || rest !== undefined) void this.#sendOn(rest);
      else live.whenMore(this.#sendLive);
    } catch (error) {
      this.#warn(error);
      this.#end('broken');
    }
  };

  /** Writes a chunk until the caller has to read first; then gives what is left, or undefined if all was taken. */
  #write(chunk: string): string | undefined {
    for (let start = 0; start < chunk.length && !this.#options.signal.aborted; ) {
      const end = wholeEnd(chunk, start + PIECE_CHARACTERS);
      if (!write(this.#raw, chunk.slice(start, end))) return chunk.slice(end);
      start = end;
    }
    return undefined;
  }

  get #sent(): Sent {
    return this.#options.signal.aborted ? 'gone' : 'more';
  }

  #warn(error: unknown): void {
    this.#options.log.warn({ err: error }, 'an event stream failed; its client can reconnect');
  }

  #end(last: Sent): void {
    // Not waited for: whoever makes the chunks may be busy until something else happens.
    if (last !== 'whole') this.#coming.return?.(undefined).catch(() => {});
    this.#stopKeepAlive?.();
    end(this.#raw, last, this.#options.keepAlive !== undefined, this.#options.signal);
  }
}

function isLive(coming: AsyncIterator<string>): coming is LivePieces {
  return 'takeNow' in coming;
}

/** What came of a chunk: there may be more, it was all, the caller is gone or has not read it, or there is none. */
type Sent = 'more' | 'whole' | 'gone' | 'unread' | 'broken';

function end(raw: ServerResponse, last: Sent, isEventStream: boolean, signal: AbortSignal): void {
  // The caller is still there, so it is the host that ends this.
  if (isEventStream && signal.aborted && !raw.destroyed) write(raw, ':closing, connect again\n\n');
  // Whoever follows events goes on from the last one; a document that is cut must not look like a whole one.
  if (last === 'whole' || (isEventStream && last !== 'unread')) raw.end();
  else raw.destroy();
}

/**
 * Writes text to an answer; false if the caller has not read what was written before. Node would make four pieces of a
 * chunk, its length, its text and two ends of lines, and send them together one turn later.
 */
function write(raw: ServerResponse, text: string): boolean {
  const { socket } = raw;
  // Without a socket, other answers on the same connection come first; without chunks, the text goes as it is.
  if (!socket || !raw.chunkedEncoding) return raw.write(text);
  const bytes = Buffer.byteLength(text);
  // Node reserves three bytes for each character of UTF-8. ASCII is the same in both.
  return socket.write(`${bytes.toString(16)}\r\n${text}\r\n`, bytes === text.length ? 'latin1' : 'utf8');
}

/** Settles, with true, when the caller has read what was sent, or has disconnected. */
function drained(raw: ServerResponse): Promise<true> {
  const sent = raw.socket ?? raw;
  return new Promise((resolve) => {
    const settle = (): void => {
      sent.off('drain', settle);
      raw.off('close', settle);
      resolve(true);
    };
    sent.on('drain', settle);
    raw.on('close', settle);
    if (raw.destroyed) settle();
  });
}

import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type Clock, withTimeout } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import { KeepAlive } from './keep-alive.ts';

/** How long readers wait before they connect again. It follows a comment, so that nobody takes it for an event. */
const RECONNECT = ':\nretry: 1000\n\n';
/** What is handed to a connection at once; more waits until its caller has read. */
const PIECE_CHARACTERS = 16_384;

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

  /**
   * Begins a stream; nobody waits for its end, because whoever did would be kept in memory with all that it knows. Event
   * streams get keep-alive comments.
   */
  begin(reply: FastifyReply, chunks: AsyncIterable<string>, sending: Sending): void {
    reply.hijack();
    const { raw } = reply;
    const isEventStream = reply.getHeader('content-type') === 'text/event-stream';
    raw.writeHead(reply.statusCode, reply.getHeaders() as Record<string, string>);
    raw.flushHeaders();
    if (isEventStream) write(raw, RECONNECT);
    const stopKeepAlive = isEventStream ? this.#keepAlive.add((comment) => write(raw, comment)) : undefined;
    this.#send(raw, chunks[Symbol.asyncIterator](), sending)
      .catch((error: unknown): Sent => {
        this.#options.log.warn({ err: error }, 'a stream broke off; its reader may connect again');
        return 'broken';
      })
      .then((last) => {
        stopKeepAlive?.();
        end(raw, last, isEventStream, sending.signal);
      });
  }

  /**
   * Sends chunks as they come, no faster than the caller reads them. A caller that stops reading is cut off, so that
   * nothing is kept for it: it can continue from the last event that it has.
   */
  async #send(raw: ServerResponse, coming: AsyncIterator<string>, sending: Sending): Promise<Sent> {
    let last: Sent = 'more';
    try {
      while (last === 'more') last = await this.#sendNext(raw, await coming.next(), sending);
    } finally {
      // Not waited for: whoever makes the chunks may be busy until something else happens.
      if (last !== 'whole') coming.return?.(undefined).catch(() => {});
    }
    return last;
  }

  /** Sends a chunk. In a function of its own, so that nobody keeps the chunk while the next one is waited for. */
  async #sendNext(
    raw: ServerResponse,
    { done, value: chunk }: IteratorResult<string, unknown>,
    { signal, turn }: Sending,
  ): Promise<Sent> {
    const { clock, unreadMs } = this.#options;
    if (done) return signal.aborted ? 'gone' : 'whole';
    if (turn) await turn();
    for (let start = 0; start < chunk.length && !signal.aborted; start += PIECE_CHARACTERS) {
      if (write(raw, chunk.slice(start, start + PIECE_CHARACTERS))) continue;
      if (!(await withTimeout(clock, unreadMs, drained(raw)))) return 'unread';
    }
    return signal.aborted ? 'gone' : 'more';
  }
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
  return socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
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

import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Reply } from '../capabilities/request.ts';
import { ERRORS, type ErrorEnvelope, type Refusal } from '../protocol/errors.ts';
import { type Clock, withTimeout } from '../system/clock.ts';
import { endLater } from '../system/end-later.ts';
import { redactText, redactValue } from '../system/redaction.ts';

/** The media type of JSON answers. */
export const JSON_TYPE = 'application/json; charset=utf-8';
/** The header of every answer that keeps browsers from treating it as another media type than it says. */
export const NO_SNIFFING = ['X-Content-Type-Options', 'nosniff'] as const;
/** How long an event stream is silent at most; then a comment follows. */
export const KEEP_ALIVE_MS = 15_000;
/** How long readers wait before they connect again. It follows a comment, so that nobody takes it for an event. */
const RECONNECT = ':\nretry: 1000\n\n';
/** What is handed to a connection at once; more waits until its caller has read. */
const PIECE_CHARACTERS = 16_384;

/** How a reply is sent. */
interface SendOptions {
  readonly clock: Clock;
  /** Aborted when the caller has disconnected. */
  readonly signal: AbortSignal;
  /** Waits for the caller's turn, before each chunk of a stream. */
  readonly turn: () => Promise<void>;
  /** A stream is cut if its caller reads nothing for so long. */
  readonly unreadMs: number;
}

/** The HTTP status of a refusal: its own, else that of its code in the error registry. */
export function statusOf(refusal: Refusal): number {
  return refusal.status ?? (ERRORS[refusal.refused] || 500);
}

/** The error envelope. Messages and details may repeat text of the caller, so both are redacted. */
export function envelopeOf({ refused, message, details }: Refusal): ErrorEnvelope {
  const envelope = { error: refused, message: redactText(message) };
  return details ? { ...envelope, details: redactValue(details) } : envelope;
}

/** Sends a refusal as the error envelope. */
export function sendRefusal(reply: FastifyReply, refusal: Refusal): FastifyReply {
  for (const [name, value] of Object.entries(refusal.headers ?? {})) reply.header(name, value);
  if (statusOf(refusal) === 401) reply.header('WWW-Authenticate', 'Bearer');
  return reply
    .code(statusOf(refusal))
    .type(JSON_TYPE)
    .send(JSON.stringify(envelopeOf(refusal)));
}

/** Sends a reply: a JSON value, text, or a stream. */
export async function sendReply(reply: FastifyReply, answer: Reply, options: SendOptions): Promise<void> {
  for (const [name, value] of Object.entries(answer.headers ?? {})) reply.header(name, value);
  reply.code(answer.status);
  if (answer.stream) return sendStream(reply, answer.stream(options.signal), options);
  if (answer.text === undefined && answer.body === undefined) {
    await reply.send();
    return;
  }
  if (!reply.hasHeader('content-type')) reply.type(JSON_TYPE);
  await reply.send(answer.text ?? JSON.stringify(answer.body));
}

/**
 * Sends chunks as they come, no faster than the caller reads them; event streams get keep-alive comments. A caller that
 * stops reading is cut off, so that nothing is kept for it: it can continue from the last event that it has.
 */
async function sendStream(reply: FastifyReply, chunks: AsyncIterable<string>, options: SendOptions): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  const { signal, clock } = options;
  const isEventStream = reply.getHeader('content-type') === 'text/event-stream';
  raw.writeHead(reply.statusCode, reply.getHeaders() as Record<string, string>);
  raw.flushHeaders();
  if (isEventStream) raw.write(RECONNECT);
  const stopKeepAlive = isEventStream ? keepAlive(reply, clock) : () => {};
  const coming = chunks[Symbol.asyncIterator]();
  let last: Sent = 'more';
  try {
    while (last === 'more') last = await sendNext(raw, coming, options);
  } finally {
    stopKeepAlive();
    if (last !== 'whole') endLater(coming);
    // The caller is still there, so it is the host that ends this.
    if (isEventStream && signal.aborted && !raw.destroyed) raw.write(':closing, connect again\n\n');
    // Whoever follows events goes on from the last one; a document that is cut must not look like a whole one.
    if (last === 'whole' || (isEventStream && last !== 'unread')) raw.end();
    else raw.destroy();
  }
}

/** What came of a chunk: there may be more, it was all, the caller is gone, or has not read it. */
type Sent = 'more' | 'whole' | 'gone' | 'unread';

/** Sends the next chunk. In a function of its own, so that nobody keeps a chunk while the next one is waited for. */
async function sendNext(
  raw: ServerResponse,
  coming: AsyncIterator<string>,
  { clock, signal, unreadMs, turn }: SendOptions,
): Promise<Sent> {
  const { done, value: chunk } = await coming.next();
  if (done) return signal.aborted ? 'gone' : 'whole';
  await turn();
  for (let start = 0; start < chunk.length && !signal.aborted; start += PIECE_CHARACTERS) {
    if (raw.write(chunk.slice(start, start + PIECE_CHARACTERS))) continue;
    if (!(await withTimeout(clock, unreadMs, drained(raw)))) return 'unread';
  }
  return signal.aborted ? 'gone' : 'more';
}

/** Settles, with true, when the caller has read what was sent, or has disconnected. */
function drained(raw: ServerResponse): Promise<true> {
  return new Promise((resolve) => {
    const settle = (): void => {
      raw.off('drain', settle);
      raw.off('close', settle);
      resolve(true);
    };
    raw.on('drain', settle);
    raw.on('close', settle);
    if (raw.destroyed) settle();
  });
}

function keepAlive(reply: FastifyReply, clock: Clock): () => void {
  let cancel = (): void => {};
  const beat = (): void => {
    cancel = clock.after(KEEP_ALIVE_MS, () => {
      reply.raw.write(':keepalive\n\n');
      beat();
    });
  };
  beat();
  return () => cancel();
}

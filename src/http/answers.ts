import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Reply } from '../capabilities/request.ts';
import { ERRORS, type ErrorEnvelope, type Refusal } from '../protocol/errors.ts';
import { redactText, redactValue } from '../system/redaction.ts';

/** The media type of JSON answers. */
export const JSON_TYPE = 'application/json; charset=utf-8';
/** The header of every answer that keeps browsers from treating it as another media type than it says. */
export const NO_SNIFFING = ['X-Content-Type-Options', 'nosniff'] as const;

/** Shorter answers are in the buffers of the connection at once, and cost the host nothing if nobody reads them. */
const LONG_CHARACTERS = 65_536;

/** Cuts connections whose callers have read nothing of a long answer for so long. Streams see to this themselves. */
export function cutUnread(app: FastifyInstance, unreadMs: number): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    // When the socket timeout expires, Node restarts it if the caller has read part of the pending write since it began;
    // otherwise Node destroys the connection.
    if (typeof payload === 'string' && payload.length > LONG_CHARACTERS) reply.raw.setTimeout(unreadMs);
    done();
  });
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

/** Writes the head of an answer that is a JSON value or text, and returns the text to be sent; undefined if it has none. */
export function encodeAnswer(reply: FastifyReply, answer: Reply): string | undefined {
  writeHead(reply, answer);
  if (answer.text === undefined && answer.body === undefined) return undefined;
  if (!reply.hasHeader('content-type')) reply.type(JSON_TYPE);
  return answer.text ?? JSON.stringify(answer.body);
}

/** Sets the status and the headers of a reply. */
export function writeHead(reply: FastifyReply, { status, headers }: Reply): void {
  for (const [name, value] of Object.entries(headers ?? {})) reply.header(name, value);
  reply.code(status);
}

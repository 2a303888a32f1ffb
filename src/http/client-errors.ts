import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { envelopeOf, JSON_TYPE, statusOf } from './answers.ts';

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/** What arrives is not HTTP that can be routed; the answer is the envelope all the same. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = refusalFor(error.code);
  const status = statusOf(refusal);
  const body = JSON.stringify(envelopeOf(refusal));
  socket.end(
    `HTTP/1.1 ${status} ${REASONS[status]}\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** The only expectation that there is an answer to is 100-continue, which Node gives by itself. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const refusal = refuse('expectation_failed', 'This host knows no such expectation. Leave the Expect header out.');
  response.writeHead(statusOf(refusal), { 'Content-Type': JSON_TYPE, Connection: 'close' });
  response.end(JSON.stringify(envelopeOf(refusal)));
}

function refusalFor(code: string | undefined): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return refuse('headers_too_large', 'The headers are too large.');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuse('request_timeout', 'The request took too long to arrive.');
  return refuse('validation_error', 'This is not a valid HTTP request.');
}

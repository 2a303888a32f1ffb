import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { envelopeOf, JSON_TYPE, NO_SNIFFING, statusOf } from './answers.ts';

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/** Answers what Node cannot parse as an HTTP request, with the error envelope like everything else. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = refusalFor(error.code);
  const status = statusOf(refusal);
  const body = JSON.stringify(envelopeOf(refusal));
  const head = [
    `HTTP/1.1 ${status} ${REASONS[status]}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    NO_SNIFFING.join(': '),
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Refuses an Expect header other than 100-continue, which Node answers by itself. */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const refusal = refuse(
    'expectation_failed',
    'The only supported expectation is 100-continue. Leave the Expect header out.',
  );
  response.setHeader(...NO_SNIFFING);
  response.writeHead(statusOf(refusal), { 'Content-Type': JSON_TYPE, Connection: 'close' });
  response.end(JSON.stringify(envelopeOf(refusal)));
}

function refusalFor(code: string | undefined): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return refuse('headers_too_large', 'The headers are too large.');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuse('request_timeout', 'The request took too long to arrive.');
  return refuse('validation_error', 'This is not a valid HTTP request.');
}

import type { FastifyRequest } from 'fastify';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { CONSOLE_HEADER } from '../protocol/operations/console-header.ts';

/** Browsers also send the cookie with requests that nobody but another page wanted; these are refused. */
const OTHER_SENDER = refuse('forbidden', 'A console session can be used only by pages of this host.', {
  reason: 'cross_site',
});
const NO_HEADER = refuse(
  'forbidden',
  `With a console session, a request that changes something needs the header ${CONSOLE_HEADER}: 1.`,
  { reason: 'csrf_header_missing' },
);
const READING: readonly string[] = ['GET', 'HEAD'];

/** Refuses a request with the session cookie that did not come from a page of this host. */
export function checkSender({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): Refusal | undefined {
  if (!isOwnPage(headers)) return OTHER_SENDER;
  return READING.includes(method) || headers[CONSOLE_HEADER] === '1' ? undefined : NO_HEADER;
}

/** Browsers say where a request comes from, and pages cannot change what they say. `none`: the person typed it. */
function isOwnPage({ origin, host, 'sec-fetch-site': site }: FastifyRequest['headers']): boolean {
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
}

import { Agent, type IncomingMessage, request } from 'node:http';
import type { Overhear } from './recorder/recorder.ts';

/** What is sent. */
export interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** An answer; without its text if that has no end. */
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const agent = new Agent({ keepAlive: true });
let overhear: Overhear = () => undefined;

/** Has every answer be heard by somebody else, too. */
export function observeAnswers(by: Overhear): void {
  overhear = by;
}

/**
 * Sends a request as `fetch` does, and reads the answer. Nothing of what `fetch` does for browsers is needed here, and it
 * costs more processor time than all else that a test does to ask a host something.
 */
export function send(url: string, sent: Sent, isEndless: (headers: Headers) => boolean): Promise<Received> {
  const { href, hostname, port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      agent,
      hostname,
      port,
      path: pathname + search,
      method: sent.method,
      headers: headersOf(sent),
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const status = incoming.statusCode!;
      const headers = headersIn(incoming);
      const listener = overhear(sent.method, href, { status, type: headers.get('content-type') ?? '' });
      if (isEndless(headers)) {
        incoming.destroy();
        resolve({ status, headers, text: '' });
        return;
      }
      let text = '';
      incoming.setEncoding('utf8').on('error', reject);
      incoming.on('data', (chunk: string) => {
        text += chunk;
      });
      incoming.on('end', () => {
        listener?.chunk(text);
        listener?.end();
        resolve({ status, headers, text });
      });
    });
    outgoing.end(sent.body);
  });
}

function headersOf({ headers, body }: Sent): Record<string, string> {
  if (body === undefined) return { accept: '*/*', ...headers };
  const size = { 'content-length': `${Buffer.byteLength(body)}` };
  return { accept: '*/*', 'content-type': 'text/plain;charset=UTF-8', ...headers, ...size };
}

function headersIn({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!);
  return headers;
}

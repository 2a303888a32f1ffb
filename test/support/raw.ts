import { connect } from 'node:net';
import type { Answer } from './api.ts';

const PATIENCE_MS = 10_000;

/** Sends bytes as they are and gives what comes back until the host closes the connection. */
export function exchange(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const received: Buffer[] = [];
    const finish = (): void => resolve(Buffer.concat(received).toString('latin1'));
    socket.setTimeout(PATIENCE_MS, () => {
      socket.destroy();
      reject(new Error(`no end of the answer: ${Buffer.concat(received).toString('latin1').slice(0, 500)}`));
    });
    socket.on('data', (chunk) => received.push(chunk));
    socket.on('end', finish);
    // A host that refuses early may reset the connection while we still send; what it said before counts.
    socket.on('error', (error) => (received.length > 0 ? finish() : reject(error)));
    socket.write(bytes, 'latin1');
  });
}

/** An HTTP/1.1 answer, taken apart. */
export function parseAnswer(text: string): Answer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const raw = rest.join('\r\n\r\n');
  const body = headers.get('transfer-encoding') === 'chunked' ? raw.replace(/^[0-9a-f]+\r\n|\r\n0\r\n\r\n$/g, '') : raw;
  return { status: Number(statusLine.split(' ')[1]), headers, text: body, body: parseJson(body) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

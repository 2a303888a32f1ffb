import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stand-ins for the services, which answer as their documentation says. They keep what they were given. */

/** A request as it arrived. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Reply = readonly [status: number, body: object | string];

/** A server that answers each request as a function says. */
export class Fake {
  readonly asked: Asked[] = [];
  readonly #server: Server;

  constructor(answer: (asked: Asked) => Reply) {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://fake');
      const body = Buffer.concat(chunks).toString('utf8');
      const asked = { method: request.method ?? '', path, query, headers: request.headers, body };
      this.asked.push(asked);
      const [status, reply] = answer(asked);
      const isText = typeof reply === 'string';
      response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json' });
      response.end(isText ? reply : JSON.stringify(reply));
    });
  }

  /** Starts it, and gives its URL. */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Slack says in the body whether a call worked. */
export function fakeSlack(): Fake {
  return new Fake(({ path, headers, body }) => {
    if (path !== '/chat.postMessage') return [200, { ok: false, error: 'unknown_method' }];
    if (headers.authorization !== 'Bearer xoxb-test') return [200, { ok: false, error: 'invalid_auth' }];
    const { channel, text, blocks = [] } = JSON.parse(body);
    if (channel !== 'C123456') return [200, { ok: false, error: 'channel_not_found' }];
    return [200, { ok: true, channel, ts: '1503435956.000247', message: { type: 'message', text, blocks } }];
  });
}

/** GitHub has one pull request for each pair of branches. */
export function fakeGitHub(): Fake {
  const pulls: { number: number; html_url: string; head: string; base: string }[] = [];
  let number = 1346;
  return new Fake(({ method, path, query, headers, body }) => {
    if (headers.authorization !== 'Bearer ghp-test') return [401, { message: 'Bad credentials' }];
    if (headers['user-agent'] === undefined) return [403, { message: 'Request forbidden by administrative rules.' }];
    const [, repository = '', what = ''] = /^\/repos\/([^/]+\/[^/]+)\/(issues|pulls)$/.exec(path) ?? [];
    if (repository !== 'octocat/Hello-World') return [404, { message: 'Not Found' }];
    if (method === 'GET') {
      const found = pulls.filter(
        ({ head, base }) => query.get('head') === `octocat:${head}` && query.get('base') === base,
      );
      return [200, found];
    }
    const given = JSON.parse(body);
    const isThere = pulls.some(({ head, base }) => head === given.head && base === given.base);
    if (what === 'pulls' && isThere) {
      const message = `A pull request already exists for octocat:${given.head}.`;
      return [422, { message: 'Validation Failed', errors: [{ resource: 'PullRequest', code: 'custom', message }] }];
    }
    const made = { number: ++number, html_url: `https://github.com/${repository}/${what}/${number}`, state: 'open' };
    if (what === 'pulls') pulls.push({ ...made, head: given.head, base: given.base });
    return [201, { ...made, title: given.title }];
  });
}

/** An S3-compatible service refuses a body that is not the one that was signed. */
export function fakeS3(): Fake {
  const objects = new Map<string, string>();
  return new Fake(({ method, path, headers, body }) => {
    const signed = /^AWS4-HMAC-SHA256 Credential=AKIATEST\/\d{8}\/us-east-1\/s3\/aws4_request,/;
    if (!signed.test(headers.authorization ?? '')) return [403, '<Error><Code>AccessDenied</Code></Error>'];
    const digest = createHash('sha256').update(body).digest('hex');
    if (headers['x-amz-content-sha256'] !== digest) {
      return [400, '<Error><Code>XAmzContentSHA256Mismatch</Code></Error>'];
    }
    if (method === 'PUT') objects.set(path, body);
    const object = objects.get(path);
    if (object === undefined) return [404, '<Error><Code>NoSuchKey</Code></Error>'];
    return [200, method === 'PUT' ? '' : object];
  });
}

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Client, createClient, type HttpAnswer, type HttpRequest, platform } from '../client/index.ts';
import { UsageError } from './exit.ts';

/** What no API key and no token of an identity provider contains; most of it no header may contain either. */
const NOT_IN_KEYS = /[^!-~]/u;

/** A client for a host. It does without `fetch`: to load that takes longer than most commands. */
export function hostClient({ url, key }: { readonly url: string; readonly key: string | undefined }): Client {
  const [wrong] = NOT_IN_KEYS.exec(key ?? '') ?? [];
  if (wrong !== undefined) {
    throw new UsageError(
      `The API key contains ${JSON.stringify(wrong)}, a character that keys do not have. Correct CAPSTAN_KEY, or log in again with \`capstan login\`.`,
    );
  }
  return createClient({ url, key, machine: { ...platform, fetch: send } });
}

function send(url: string, { method = 'GET', headers = {}, body, signal }: HttpRequest): Promise<HttpAnswer> {
  const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, ...(signal ? { signal } : {}) }, (response) => {
      const answer = answerOf(response);
      const isRedirect = answer.status >= 300 && answer.status < 400;
      if (isRedirect) response.destroy();
      // A redirect would send the credential to another host.
      if (isRedirect)
        reject(
          new Error(`it redirects to ${response.headers.location ?? 'another address'}; set CAPSTAN_URL to that host`),
        );
      else resolve(answer);
    });
    sent.on('error', reject).end(body);
  });
}

function answerOf(response: IncomingMessage): HttpAnswer {
  const { statusCode: status = 0, headers } = response;
  return {
    ok: status >= 200 && status < 300,
    status,
    headers: { get: (name) => headers[name]?.toString() ?? null },
    get body() {
      return Readable.toWeb(response);
    },
    text: () => text(response),
  };
}

import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { answerClientError } from './client-errors.ts';

describe('what is not HTTP that can be routed', () => {
  it.each([
    ['HPE_HEADER_OVERFLOW', 431, 'headers_too_large'],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'request_timeout'],
    ['HPE_INVALID_METHOD', 400, 'validation_error'],
    [undefined, 400, 'validation_error'],
  ])('is answered with the envelope all the same: %s', (code, status, error) => {
    const { head, body } = answered(code);
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
    expect(head).toMatch(/Content-Type: application\/json/);
    expect(head).toMatch(/Connection: close/);
    expect(head).toContain(`Content-Length: ${Buffer.byteLength(body)}`);
    expect(JSON.parse(body)).toEqual({ error, message: expect.any(String) });
  });

  it('is not answered where nobody listens any more', () => {
    for (const [code, writable] of [
      ['ECONNRESET', true],
      ['HPE_INVALID_METHOD', false],
    ] as const) {
      const { socket, wasDestroyed, text } = fakeSocket(writable);
      answerClientError(Object.assign(new Error('gone'), { code }), socket);
      expect(wasDestroyed()).toBe(true);
      expect(text()).toBe('');
    }
  });
});

function answered(code: string | undefined): { head: string; body: string } {
  const { socket, text } = fakeSocket(true);
  answerClientError(Object.assign(new Error('bad'), code === undefined ? {} : { code }), socket);
  const [head = '', body = ''] = text().split('\r\n\r\n');
  return { head, body };
}

function fakeSocket(writable: boolean) {
  let sent = '';
  let isDestroyed = false;
  const socket = {
    writable,
    end: (text: string) => {
      sent += text;
    },
    destroy: () => {
      isDestroyed = true;
    },
  } as unknown as Socket;
  return { socket, text: () => sent, wasDestroyed: () => isDestroyed };
}

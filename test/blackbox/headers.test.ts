import { expect, it } from 'vitest';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS } from '../support/host.ts';
import { exchange, parseAnswer } from '../support/raw.ts';
import { onOneStore } from '../support/stores.ts';

/** What every answer carries, and what a request may not say twice. */

const NO_BODY = 'Host: a\r\nConnection: close';
const KEY = `Authorization: Bearer ${KEYS.editor.key}`;

onOneStore('headers', (host) => {
  const ask = async (head: string) => parseAnswer(await exchange(host().url, `${head}\r\n\r\n`));

  it.each([
    ['a page', `GET / HTTP/1.1\r\n${NO_BODY}`],
    ['a probe', `GET /healthz HTTP/1.1\r\n${NO_BODY}`],
    ['the discovery document', `GET /.well-known/openwop HTTP/1.1\r\n${NO_BODY}`],
    ['a list', `GET /v1/host/capstan/audit HTTP/1.1\r\n${NO_BODY}\r\n${KEY}`],
    ['a file that is streamed', `GET /v1/host/capstan/audit/export HTTP/1.1\r\n${NO_BODY}\r\n${KEY}`],
    ['a refusal without a key', `GET /v1/runs/a HTTP/1.1\r\n${NO_BODY}`],
    ['a path that there is not', `GET /v1/nowhere HTTP/1.1\r\n${NO_BODY}\r\n${KEY}`],
    ['a method that there is not', `DELETE /v1/runs HTTP/1.1\r\n${NO_BODY}\r\n${KEY}`],
    ['a path that cannot be decoded', `GET /v1/runs/%zz HTTP/1.1\r\n${NO_BODY}\r\n${KEY}`],
    ['an expectation', `POST /v1/runs HTTP/1.1\r\n${NO_BODY}\r\nExpect: 200-maybe`],
    ['no HTTP at all', 'hello'],
  ])('forbid to guess the media type: %s', async (_what, head) => {
    const { headers } = await ask(head);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('forbid it for a stream of events', async () => {
    const runId = await host().as('editor').run('conformance-noop');
    const { headers } = await ask(`GET /v1/runs/${runId}/events HTTP/1.1\r\n${NO_BODY}\r\n${KEY}`);
    expect(headers.get('content-type')).toBe('text/event-stream');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it.each([
    ['two', 'Host: a\r\nHost: b'],
    ['two that say the same', 'Host: a\r\nhost: a'],
    ['none', 'X-Nothing: a'],
  ])('name the host once: not %s', async (_what, hosts) => {
    const answer = await ask(`GET /v1/runs/a HTTP/1.1\r\n${hosts}\r\nConnection: close\r\n${KEY}`);
    expectRefusal(answer, 400, 'validation_error');
    expect(answer.body).toMatchObject({ details: { field: 'Host' } });
  });
});

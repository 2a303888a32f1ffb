import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { createEgress, type Egress, type EgressRequest, type Resolve } from './egress.ts';
import { realClock } from './real.ts';

/** No test leaves the machine: the tests resolve names, and servers listen on loopback. */

const PUBLIC: Resolve = async () => ['93.184.216.34'];
const guarded = egressTo(PUBLIC);
const open = egressTo(async () => ['127.0.0.1'], true);
const LIMITS = { timeoutMs: 5_000, maxBytes: 1_000 };

function egressTo(resolve: Resolve, allowLoopback = false): Egress {
  return createEgress({ clock: realClock, allowLoopback, resolve });
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Starts a server on loopback and returns its port. */
async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const get = (egress: Egress, url: string, more: Partial<EgressRequest> = {}) =>
  egress.send({ url, ...LIMITS, ...more });

describe('the text of a URL', () => {
  it.each([
    'https://example.com/hook',
    'https://example.com:8443/a?b=c',
    'https://1.1.1.1/',
    'https://[2606:4700::1]/',
  ])('is accepted: %s', (url) => {
    expect(guarded.problemWith(url)).toBeUndefined();
  });

  it.each([
    'http://example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'nonsense',
    '',
    '//example.com',
    'https://',
    'https://user@example.com/',
    'https://user:secret@example.com/',
    'https://:secret@example.com/',
    `https://example.com/${'a'.repeat(2_048)}`,
    'https://localhost/',
    'https://LOCALHOST/',
    'https://localhost./',
    'https://localhost../',
    'https://a.localhost/',
    'https://printer.local/',
    'https://metadata/',
    'https://metadata.google.internal/',
    'https://metadata.google.internal./',
    'https://redis:6379/',
    'https://127.0.0.1/',
    'https://127.0.0.1./',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0177.0.0.1/',
    'https://017700000001/',
    'https://%31%32%37.0.0.1/',
    'https://①②⑦.⓪.⓪.①/',
    'https://127。0。0。1/',
    'https://0/',
    'https://0.0.0.0/',
    'https://10.0.0.1/',
    'https://172.16.0.1/',
    'https://192.168.0.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://2852039166/',
    'https://100.64.0.1/',
    'https://255.255.255.255/',
    'https://[::1]/',
    'https://[::]/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[fe80::1]/',
    'https://[fc00::1]/',
  ])('is refused: %s', async (url) => {
    expect(guarded.problemWith(url)).toEqual(expect.any(String));
    expect(await guarded.check(url)).toBe(guarded.problemWith(url));
    await expect(get(guarded, url)).rejects.toMatchObject({ reason: 'refused' });
  });

  it('is never quoted in the problem', () => {
    expect(guarded.problemWith('https://XYZZY:XYZZY@example.com/')).not.toContain('XYZZY');
    expect(guarded.problemWith('http://XYZZY.example/')).not.toContain('XYZZY');
  });
});

describe('a name', () => {
  it.each([
    ['loopback', ['127.0.0.1']],
    ['private', ['10.1.2.3']],
    ['IPv6 loopback', ['::1']],
    ['mapped', ['::ffff:169.254.169.254']],
    ['one of several', ['93.184.216.34', '192.168.0.1']],
  ])('that resolves to a %s address is refused', async (_kind, addresses) => {
    const egress = egressTo(async () => addresses);
    expect(egress.problemWith('https://hook.example/')).toBeUndefined();
    expect(await egress.check('https://hook.example/')).toEqual(expect.any(String));
    await expect(get(egress, 'https://hook.example/')).rejects.toMatchObject({ reason: 'refused' });
  });

  it('that resolves to public addresses is accepted', async () => {
    expect(await guarded.check('https://hook.example/')).toBeUndefined();
  });

  it('that cannot be resolved is accepted until something is sent', async () => {
    const egress = egressTo(() => Promise.reject(new Error('no such name')));
    expect(await egress.check('https://hook.example/')).toBeUndefined();
    await expect(get(egress, 'https://hook.example/')).rejects.toMatchObject({ reason: 'unreachable' });
    await expect(
      get(
        egressTo(async () => []),
        'https://hook.example/',
      ),
    ).rejects.toMatchObject({
      reason: 'unreachable',
    });
  });

  it('that takes long to resolve delays neither a check nor a request beyond its timeout', async () => {
    const clock = new ManualClock();
    const egress = createEgress({ clock, allowLoopback: false, resolve: () => new Promise(() => {}) });
    const checked = egress.check('https://hook.example/');
    const sent = get(egress, 'https://hook.example/');
    clock.advance(1_000);
    expect(await checked).toBeUndefined();
    clock.advance(4_000);
    await expect(sent).rejects.toMatchObject({ reason: 'timeout' });
  });

  it('is resolved once per request, so that it cannot be rebound', async () => {
    const answers = [['127.0.0.1'], ['10.0.0.1']];
    let asked = 0;
    const egress = egressTo(async () => answers[asked++]!, true);
    const port = await serve((_request, response) => response.end('here'));
    const { body } = await get(egress, `http://rebind.localhost:${port}/`);
    expect(body.toString()).toBe('here');
    expect(asked).toBe(1);
    await expect(get(egress, `http://rebind.localhost:${port}/`)).rejects.toMatchObject({ reason: 'refused' });
  });
});

describe('if loopback is allowed', () => {
  it.each([
    'http://127.0.0.1:1/',
    'https://127.0.0.1/',
    'http://localhost:1/',
    'http://[::1]:1/',
    'http://a.localhost/',
  ])('%s is accepted', async (url) => {
    expect(open.problemWith(url)).toBeUndefined();
    expect(await open.check(url)).toBeUndefined();
  });

  it.each([
    'http://example.com/',
    'ftp://127.0.0.1/',
    'http://10.0.0.1/',
    'https://10.0.0.1/',
    'https://169.254.169.254/',
    'https://0.0.0.0/',
    'https://[::]/',
    'https://[2002:7f00:1::]/',
    'https://metadata/',
    'http://user@127.0.0.1/',
  ])('%s is still refused', async (url) => {
    expect(open.problemWith(url)).toEqual(expect.any(String));
  });

  it('plain http reaches only this machine, whatever localhost resolves to', async () => {
    const egress = egressTo(PUBLIC, true);
    expect(await egress.check('http://localhost/')).toEqual(expect.any(String));
    await expect(get(egress, 'http://localhost/')).rejects.toMatchObject({ reason: 'refused' });
  });
});

describe('the names of this machine', () => {
  it('are resolved without DNS', async () => {
    const egress = createEgress({ clock: realClock, allowLoopback: true });
    const port = await serve((_request, response) => response.end('here'));
    for (const name of ['localhost', 'hooks.localhost']) {
      expect((await get(egress, `http://${name}:${port}/`)).body.toString()).toBe('here');
    }
    expect((await get(egress, `http://localhost:${port}/`, { trusted: true })).body.toString()).toBe('here');
  });
});

describe('a trusted URL', () => {
  it('may be private and use plain http', async () => {
    const port = await serve((_request, response) => response.end('inside'));
    const egress = egressTo(async () => ['127.0.0.1']);
    const { body } = await get(egress, `http://keys.internal:${port}/`, { trusted: true });
    expect(body.toString()).toBe('inside');
  });

  it.each(['ftp://keys.internal/', 'nonsense', 'http://user:secret@keys.internal/'])(
    'is still an address of the web: not %s',
    async (url) => {
      await expect(get(guarded, url, { trusted: true })).rejects.toMatchObject({ reason: 'refused' });
    },
  );
});

describe('an exchange', () => {
  it('sends method, headers and body, and returns status, headers and body', async () => {
    const port = await serve(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const seen = { method: request.method, url: request.url, headers: request.headers };
      response.writeHead(201, { 'x-answer': 'yes' });
      response.end(JSON.stringify({ ...seen, body: Buffer.concat(chunks).toString() }));
    });
    const answer = await get(open, `http://127.0.0.1:${port}/a?b=c`, {
      method: 'POST',
      headers: { 'X-Given': 'this' },
      body: 'gr\u00fc\u00dfe',
    });
    expect(answer).toMatchObject({ status: 201, headers: { 'x-answer': 'yes' } });
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      method: 'POST',
      url: '/a?b=c',
      body: 'gr\u00fc\u00dfe',
      headers: { 'x-given': 'this', host: `127.0.0.1:${port}`, 'content-length': '7' },
    });
  });

  it.each([301, 302, 303, 307, 308])('does not follow a %i', async (status) => {
    const asked: string[] = [];
    const port = await serve((request, response) => {
      asked.push(request.url!);
      response.writeHead(status, { location: '/elsewhere' }).end();
    });
    const answer = await get(open, `http://127.0.0.1:${port}/start`);
    expect(answer).toMatchObject({ status, headers: { location: '/elsewhere' } });
    expect(asked).toEqual(['/start']);
  });

  it('fails if a response is too large, or truncates it on request', async () => {
    const port = await serve((_request, response) => response.end('a'.repeat(LIMITS.maxBytes + 1)));
    const url = `http://127.0.0.1:${port}/`;
    await expect(get(open, url)).rejects.toMatchObject({ reason: 'too_large' });
    expect((await get(open, url, { excess: 'cut' })).body).toHaveLength(LIMITS.maxBytes);
    expect((await get(open, url, { maxBytes: LIMITS.maxBytes + 1 })).body).toHaveLength(LIMITS.maxBytes + 1);
  });

  it('reads no more of an endless response than allowed', async () => {
    const port = await serve((_request, response) => {
      const more = (): void => {
        while (response.write('a'.repeat(65_536)));
      };
      response.on('drain', more);
      more();
    });
    await expect(get(open, `http://127.0.0.1:${port}/`)).rejects.toMatchObject({ reason: 'too_large' });
  });

  it('fails if headers are too long', async () => {
    const port = await serve((_request, response) =>
      response.writeHead(200, { 'x-long': 'a'.repeat(20_000) }).end('body'),
    );
    await expect(get(open, `http://127.0.0.1:${port}/`)).rejects.toMatchObject({ reason: 'unreachable' });
  });

  it.each([
    ['says nothing', () => {}],
    ['stops in the middle', (_request, response) => void response.write('a')],
  ] as [string, RequestListener][])('times out with a server that %s', async (_what, listener) => {
    const clock = new ManualClock();
    const egress = createEgress({ clock, allowLoopback: true });
    const asked = Promise.withResolvers<void>();
    const port = await serve((request, response) => {
      listener(request, response);
      asked.resolve();
    });
    const sent = get(egress, `http://127.0.0.1:${port}/`);
    await asked.promise;
    clock.advance(LIMITS.timeoutMs);
    await expect(sent).rejects.toMatchObject({ reason: 'timeout' });
  });

  it('fails when it is aborted', async () => {
    const abort = new AbortController();
    const port = await serve(() => abort.abort());
    const url = `http://127.0.0.1:${port}/`;
    await expect(get(open, url, { signal: abort.signal })).rejects.toMatchObject({ reason: 'aborted' });
    await expect(get(open, url, { signal: abort.signal })).rejects.toMatchObject({ reason: 'aborted' });
  });

  it('fails with the reason if nobody listens', async () => {
    const port = await serve(() => {});
    servers.pop()!.close();
    await expect(get(open, `http://127.0.0.1:${port}/`)).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('fails if the server does not speak https', async () => {
    const port = await serve((_request, response) => response.end('plain'));
    await expect(get(open, `https://127.0.0.1:${port}/`)).rejects.toMatchObject({ reason: 'unreachable' });
  });
});

describe('a streamed response', () => {
  const stream = async (port: number, more: Partial<EgressRequest> = {}) =>
    open.open({ url: `http://127.0.0.1:${port}/`, ...LIMITS, ...more });
  const textOf = async (body: AsyncIterable<Uint8Array>): Promise<string> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  };

  it('is available before it ends', async () => {
    let finish = (): void => {};
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('begin ');
      finish = () => void response.end('end');
    });
    const { status, headers, body } = await stream(port);
    expect([status, headers['content-type']]).toEqual([200, 'text/plain']);
    const pieces = body[Symbol.asyncIterator]();
    expect(Buffer.from((await pieces.next()).value).toString()).toBe('begin ');
    finish();
    expect(Buffer.from((await pieces.next()).value).toString()).toBe('end');
    expect((await pieces.next()).done).toBe(true);
  });

  it('is bounded in size', async () => {
    const port = await serve((_request, response) => void response.end('x'.repeat(2_000)));
    const { body } = await stream(port);
    await expect(textOf(body)).rejects.toMatchObject({ reason: 'too_large' });
  });

  it('is bounded in time, to its last byte', async () => {
    const clock = new ManualClock();
    const egress = createEgress({ clock, allowLoopback: true });
    const port = await serve((_request, response) => void response.write('begin'));
    const { body } = await egress.open({ url: `http://127.0.0.1:${port}/`, ...LIMITS });
    const pieces = body[Symbol.asyncIterator]();
    await pieces.next();
    const rest = pieces.next();
    clock.advance(LIMITS.timeoutMs);
    await expect(rest).rejects.toMatchObject({ reason: 'timeout' });
  });

  it('ends when it is aborted', async () => {
    const controller = new AbortController();
    const port = await serve((_request, response) => void response.write('begin'));
    const { body } = await stream(port, { signal: controller.signal });
    const pieces = body[Symbol.asyncIterator]();
    await pieces.next();
    const rest = pieces.next();
    controller.abort();
    await expect(rest).rejects.toMatchObject({ reason: 'aborted' });
  });

  it('is distinguished from one that breaks off', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('begin', () => response.destroy());
    });
    const { body } = await stream(port);
    await expect(textOf(body)).rejects.toMatchObject({ reason: 'unreachable' });
  });

  it('is subject to the same address checks', async () => {
    await expect(guarded.open({ url: 'https://10.0.0.1/', ...LIMITS })).rejects.toMatchObject({ reason: 'refused' });
  });
});

import { connect } from 'node:net';
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LivePieces } from '../capabilities/request.ts';
import { realClock } from '../system/real.ts';
import { JSON_TYPE } from './answers.ts';
import { Streams } from './streams.ts';

describe('a stream that ends before its time', () => {
  const app = Fastify();
  let url: string;
  const stopping = new AbortController();
  const broken: unknown[] = [];
  const streams = new Streams({
    clock: realClock,
    log: { warn: (fact: unknown) => void broken.push(fact) },
    unreadMs: 10_000,
  });
  const pieces: Record<string, () => AsyncGenerator<string>> = {
    whole: async function* () {
      yield '[1,';
      yield '2]';
    },
    failing: async function* () {
      yield '[1,';
      throw new Error('the store is away');
    },
    stopping: async function* () {
      yield '[1,';
      stopping.abort();
      yield '2]';
    },
  };

  beforeAll(async () => {
    for (const [name, stream] of Object.entries(pieces)) {
      for (const [kind, type] of Object.entries({ document: JSON_TYPE, events: 'text/event-stream' })) {
        app.get(`/${name}/${kind}`, async (_request, reply) => {
          const signal = name === 'stopping' ? stopping.signal : new AbortController().signal;
          streams.begin(reply.type(type), stream(), { signal });
          return reply;
        });
      }
    }
    url = await app.listen({ port: 0 });
  });
  afterAll(() => app.close());

  const textOf = async (path: string): Promise<string> => (await fetch(url + path)).text();

  it('is cut if it is a document, so that nobody takes a part for the whole', async () => {
    expect(await textOf('/whole/document')).toBe('[1,2]');
    await expect(textOf('/failing/document')).rejects.toThrow();
    await expect(textOf('/stopping/document')).rejects.toThrow();
  });

  it('ends if it has events: whoever follows them goes on from the last one', async () => {
    expect(await textOf('/failing/events')).toContain('[1,');
    expect(await textOf('/stopping/events')).toContain(':closing');
  });

  it('is logged if the host could not go on', async () => {
    broken.length = 0;
    await textOf('/failing/events');
    expect(broken).toEqual([{ err: new Error('the store is away') }]);
  });

  /** What a bare connection gets for requests that are sent together. */
  const answersTo = (requests: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(url).port), new URL(url).hostname);
      let text = '';
      socket.on('data', (data) => {
        text += data.toString();
      });
      socket.on('error', reject).on('close', () => resolve(text));
      socket.write(requests);
    });

  it('is whole, and in order, where requests share a connection', async () => {
    const first = 'GET /whole/events HTTP/1.1\r\nhost: x\r\n\r\n';
    const second = 'GET /whole/document HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    const text = await answersTo(first + second);
    const [, events = '', document = ''] = text.split('HTTP/1.1 200 OK');
    expect(events).toMatch(/3\r\n\[1,\r\n2\r\n2\]\r\n0\r\n\r\n$/);
    expect(document).toMatch(/3\r\n\[1,\r\n2\r\n2\]\r\n0\r\n\r\n$/);
  });

  it('has no lengths of chunks for a caller that does not know them', async () => {
    expect(await answersTo('GET /whole/document HTTP/1.0\r\n\r\n')).toMatch(/\r\n\r\n\[1,2\]$/);
  });
});

describe('live pieces', () => {
  const broken: unknown[] = [];
  const log = { warn: (fact: unknown) => void broken.push(fact) };

  /** Pieces that a test puts there: one is taken at a time, an error is thrown, and after the last the stream ends. */
  class Pieces implements LivePieces {
    readonly here: (string | Error)[] = [];
    waited = 0;
    isOver = false;
    #tell: () => void = () => {};

    put(...pieces: (string | Error)[]): void {
      this.here.push(...pieces);
      this.#tell();
    }

    end(): void {
      this.isOver = true;
      this.#tell();
    }

    [Symbol.asyncIterator](): this {
      return this;
    }

    whenMore(tell: () => void): void {
      this.#tell = () => {
        this.#tell = () => {};
        tell();
      };
      if (this.here.length > 0 || this.isOver) queueMicrotask(this.#tell);
    }

    takeNow(): string | undefined {
      const piece = this.here.shift();
      if (piece instanceof Error) throw piece;
      return piece;
    }

    async next(): Promise<IteratorResult<string, undefined>> {
      this.waited++;
      const piece = this.here.shift();
      return typeof piece === 'string' ? { done: false, value: piece } : { done: true, value: undefined };
    }
  }

  /** A stream of such pieces, and the text that its reader gets of it. */
  async function streamOf(pieces: Pieces, unreadMs = 10_000) {
    const app = Fastify();
    const streams = new Streams({ clock: realClock, log, unreadMs });
    app.get('/', async (_request, reply) => {
      streams.begin(reply.type('text/event-stream'), pieces, { signal: new AbortController().signal });
      return reply;
    });
    onTestFinished(() => app.close());
    return fetch(await app.listen({ port: 0 }));
  }

  const textOf = async (pieces: Pieces): Promise<string> =>
    (await (await streamOf(pieces)).text()).replace(':\nretry: 1000\n\n', '');

  it('are sent as they come, and those without text are left out', async () => {
    const pieces = new Pieces();
    pieces.put('one,');
    const text = textOf(pieces);
    await vi.waitFor(() => expect(pieces.waited).toBe(1));
    for (const piece of ['two,', '', 'three']) pieces.put(piece);
    pieces.end();
    expect(await text).toBe('one,two,three');
    expect(pieces.waited).toBe(2);
  });

  it('come whole to a reader who is slower than they are', async () => {
    const pieces = new Pieces();
    const long = Array.from({ length: 50 }, (_, index) => String(index % 10).repeat(100_000));
    pieces.put('', ...long);
    pieces.end();
    expect(await textOf(pieces)).toBe(long.join(''));
  });

  it('come whole although their characters take two code units, wherever a piece is cut', async () => {
    const pieces = new Pieces();
    const long = ['', 'a', 'é', '漢a'].map((first) => first + '😀'.repeat(40_000));
    pieces.put('', ...long);
    pieces.end();
    expect(await textOf(pieces)).toBe(long.join(''));
  });

  it('end if one cannot be made, and that is logged', async () => {
    broken.length = 0;
    const pieces = new Pieces();
    pieces.put('one', new Error('no such text'));
    expect(await textOf(pieces)).toBe('one');
    expect(broken).toEqual([{ err: new Error('no such text') }]);
  });
});

import { connect } from 'node:net';
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

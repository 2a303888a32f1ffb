import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode, refuse } from '../protocol/errors.ts';
import { realClock } from '../system/real.ts';
import { envelopeOf, JSON_TYPE, sendReply, statusOf } from './answers.ts';

describe('the status of a refusal', () => {
  it.each(Object.entries(ERRORS) as [ErrorCode, number][])('%s is %d', (code, status) => {
    // What belongs inside a run and is answered all the same is a mistake of ours.
    expect(statusOf(refuse(code, 'No.'))).toBe(status === 0 ? 500 : status);
  });

  it('is another where the protocol pins it for this case', () => {
    expect(statusOf({ ...refuse('capability_required', 'No.'), status: 400 })).toBe(400);
  });
});

describe('the envelope of a refusal', () => {
  const SECRET = ['sk', 'ant-api03-Zq8Rk2Lw9Tv4Xy7Bn3Md6Fs1Hj5Pc0Gu'].join('-');

  it('has exactly these members', () => {
    expect(envelopeOf({ ...refuse('conflict', 'No.', { state: 'x' }), headers: { a: 'b' }, status: 409 })).toEqual({
      error: 'conflict',
      message: 'No.',
      details: { state: 'x' },
    });
    expect(Object.keys(envelopeOf(refuse('conflict', 'No.')))).toEqual(['error', 'message']);
  });

  it('holds no secret that a caller sent', () => {
    const refusal = refuse('validation_error', `${SECRET} is not known here.`, {
      field: SECRET,
      fields: [{ path: SECRET }],
    });
    expect(JSON.stringify(envelopeOf(refusal))).not.toContain(SECRET);
  });
});

describe('a stream that ends before its time', () => {
  const app = Fastify();
  let url: string;
  const stopping = new AbortController();
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
          const options = { clock: realClock, signal, turn: async () => {}, unreadMs: 10_000 };
          await sendReply(reply, { status: 200, headers: { 'content-type': type }, stream }, options);
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
});

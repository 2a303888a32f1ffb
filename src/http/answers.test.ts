import { connect } from 'node:net';
import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ERRORS, type ErrorCode, refuse } from '../protocol/errors.ts';
import { cutUnread, envelopeOf, statusOf } from './answers.ts';

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

describe('a long answer', () => {
  /** More than the buffers of a connection hold. */
  const LONG = 'x'.repeat(64_000_000);

  /** A host that cuts unread answers, and what came of the last one: whether all of it was handed over. */
  async function serving(unreadMs: number) {
    const app = Fastify();
    cutUnread(app, unreadMs);
    const closed = Promise.withResolvers<boolean>();
    app.get('/', async (_request, reply) => {
      reply.raw.on('close', () => closed.resolve(reply.raw.writableFinished));
      return LONG;
    });
    onTestFinished(() => app.close());
    return { url: await app.listen({ port: 0 }), isSent: closed.promise };
  }

  it('is cut if its caller reads nothing', async () => {
    const { url, isSent } = await serving(100);
    const socket = connect(Number(new URL(url).port), new URL(url).hostname).pause();
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(await isSent).toBe(false);
  });

  it('is whole if its caller reads', async () => {
    const { url, isSent } = await serving(10_000);
    expect((await (await fetch(url)).text()).length).toBe(LONG.length);
    expect(await isSent).toBe(true);
  });
});

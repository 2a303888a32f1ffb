import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAIL_LOGIN, MailServer } from '../../../../test/support/mail-server.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { Firing } from '../../../runtime/effects/firing.ts';
import type { MailRequest } from '../../../runtime/effects/mail.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import { type Egress, EgressFailure } from '../../../system/egress.ts';
import { type MailSettings, readMail } from './settings.ts';
import { mailSeam } from './smtp.ts';

const MAIL: MailRequest = {
  from: { address: 'alerts@example.com' },
  to: [{ address: 'ann@example.com' }],
  cc: [],
  bcc: [],
  subject: 'Hello',
  text: 'How are you?',
  isTolerant: false,
};

let server: MailServer;
beforeEach(async () => {
  server = await MailServer.open();
});
afterEach(() => server.close());

/** Every name leads to the server of the test. */
const dial = (): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(server.port, '127.0.0.1', () => resolve(socket));
  });

function send(
  url: string,
  signal = new AbortController().signal,
  open: () => Promise<Socket> = dial,
  more: Partial<MailRequest> = {},
) {
  const settings = readMail(url, '@example.com').mail as MailSettings;
  const seam = mailSeam(settings, { connect: open } as unknown as Egress, new ManualClock());
  return seam({ ...MAIL, ...more }, { effectId: 'effect-1', signal } as Firing);
}

describe('a message', () => {
  it('carries the identity of the effect, however often it is sent', async () => {
    await send('smtp://localhost');
    await send('smtp://127.0.0.1');
    const ids = server.letters.map(({ headers }) => headers.get('message-id'));
    expect(ids).toEqual(['<effect-1@example.com>', '<effect-1@example.com>']);
  });

  it('is not sent to another machine, nor the login, where nobody would keep it secret on the way', async () => {
    const url = `smtp://${MAIL_LOGIN.user}:${encodeURIComponent(MAIL_LOGIN.password)}@mail.example`;
    await expect(send(url)).rejects.toBeInstanceOf(NodeFailure);
    await expect(send(url.replace('smtp:', 'smtps:'))).rejects.toBeInstanceOf(NodeFailure);
    expect(server.letters).toEqual([]);
    expect(server.logins).toBe(0);
  });

  it('is refused with a login that is refused, and nothing that the server says is told', async () => {
    const failure = await send('smtp://capstan:wrong@localhost').catch((error: unknown) => error);
    expect(failure).toMatchObject({ error: { code: 'mail_refused', details: { status: 535 }, retryable: false } });
    expect(JSON.stringify(failure)).not.toMatch(/no such user|wrong/);
  });

  it('may be sent again where there was nobody', async () => {
    const nobody = () => Promise.reject(new EgressFailure('unreachable', 'There was no answer (ECONNREFUSED).'));
    await expect(send('smtp://localhost', undefined, nobody)).rejects.toMatchObject({
      error: { code: 'upstream_unavailable', message: 'There was no answer (ECONNREFUSED).', retryable: true },
    });
  });

  it.each([false, true])('is given up when nobody waits for it any more (tolerant: %s)', async (isTolerant) => {
    const enough = new AbortController();
    const dialAndAbort = async () => {
      const socket = await dial();
      enough.abort();
      return socket;
    };
    const sending = send('smtp://localhost', enough.signal, dialAndAbort, { isTolerant });
    await expect(sending).rejects.toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(server.letters).toEqual([]);
  });
});

import type { Socket } from 'node:net';
import { domainOf, type MailRequest, type MailResult } from '../../../runtime/effects/mail.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import { isLoopbackName, reachOf } from '../../../system/addresses.ts';
import type { Clock } from '../../../system/clock.ts';
import { type Egress, EgressFailure } from '../../../system/egress.ts';
import type { MailSettings } from './settings.ts';

const PROVIDER = 'smtp';
const CONNECT_MS = 15_000;
const SOCKET_TIMEOUT_MS = 30_000;

/** Sends messages through the configured mail server. A retryable failure leaves the effect open. */
export function mailSeam(settings: MailSettings, egress: Egress, clock: Clock): SeamDrivers['mail'] {
  return async (mail, { effectId, signal }) => {
    checkSender(settings, mail);
    const known = { messageId: `<${effectId}@${domainOf(mail.from)}>`, provider: PROVIDER, idempotencyKey: effectId };
    try {
      const rejected = await deliver(settings, egress, messageOf(mail, known.messageId, clock.now()), signal);
      return { sent: true, ...known, ...(rejected.length > 0 ? { rejected } : {}) } satisfies MailResult;
    } catch (error) {
      const failure = failureOf(error);
      // An abort is ours and says nothing about the mail server: it is never a result, so the effect stays open.
      if (!mail.isTolerant || signal.aborted) throw failure;
      return { sent: false, ...known, error: failure.message };
    }
  };
}

/** Permission to edit workflows does not include permission to choose the sender address. */
function checkSender({ senders }: MailSettings, { from }: MailRequest): void {
  const address = from.address.toLowerCase();
  if (senders.includes(address) || senders.includes(`@${domainOf(from)}`)) return;
  const message = `This host may not send mail from ${address}. Check CAPSTAN_SMTP_SENDERS.`;
  throw new NodeFailure({ code: 'egress_denied', message, details: { from: address }, retryable: false });
}

/** Only checked values: the library would read files and URLs that an unchecked one refers to. */
function messageOf({ from, replyTo, to, cc, bcc, subject, text, html }: MailRequest, messageId: string, now: number) {
  const named = ({ name = '', address }: MailRequest['from']) => ({ name, address });
  return {
    messageId,
    date: new Date(now),
    from: named(from),
    ...(replyTo ? { replyTo: named(replyTo) } : {}),
    to: to.map(named),
    cc: cc.map(named),
    bcc: bcc.map(named),
    subject,
    ...(text === undefined ? {} : { text }),
    ...(html === undefined ? {} : { html }),
    headers: { 'auto-submitted': 'auto-generated' },
  };
}

/** Sends one message; returns the addresses that the server rejected. */
async function deliver(
  settings: MailSettings,
  egress: Egress,
  message: ReturnType<typeof messageOf>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { host, port, isSecure, login } = settings;
  const { createTransport } = await import('nodemailer');
  const socket = await egress.connect({ host, port, timeoutMs: CONNECT_MS, signal });
  const hangUp = (): void => void socket.destroy();
  signal.addEventListener('abort', hangUp, { once: true });
  try {
    if (signal.aborted) throw new EgressFailure('aborted', 'The run no longer waits for this message.');
    const transport = createTransport({
      host,
      port,
      secure: isSecure,
      requireTLS: !isSecure && !isLocal(host),
      ...(login ? { auth: { user: login.user, pass: login.password } } : {}),
      greetingTimeout: CONNECT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
      getSocket: (_options: unknown, use: (error: null, opened: { connection: Socket }) => void) =>
        use(null, { connection: socket }),
    });
    const { rejected } = await transport.sendMail(message);
    return rejected.map(String);
  } finally {
    signal.removeEventListener('abort', hangUp);
    hangUp();
  }
}

function isLocal(host: string): boolean {
  return isLoopbackName(host) || reachOf(host) === 'loopback';
}

/** The server's text is not repeated, because it may contain anything. */
function failureOf(error: unknown): NodeFailure {
  const { responseCode: status } = error as { responseCode?: number };
  if (status !== undefined && status >= 500) {
    const message = `The mail server refused the message (status ${status}).`;
    return new NodeFailure({ code: 'mail_refused', message, details: { status }, retryable: false });
  }
  const { code } = error as { code?: unknown };
  const reason =
    error instanceof EgressFailure ? error.message : `The mail server did not accept the message (${status ?? code}).`;
  return new NodeFailure({ code: 'upstream_unavailable', message: reason, retryable: true });
}

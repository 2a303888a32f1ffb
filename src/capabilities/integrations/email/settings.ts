import { addressFrom } from '../../../runtime/effects/mail.ts';
import { defineSettings } from '../../settings.ts';

/** The configured mail server and its allowed senders. */
export interface MailSettings {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte. Otherwise STARTTLS is required, unless the server is on this machine. */
  readonly isSecure: boolean;
  readonly login?: { readonly user: string; readonly password: string } | undefined;
  /** Addresses, or `@example.com` for a whole domain, in lower case. */
  readonly senders: readonly string[];
}

const PORTS: Readonly<Record<string, number>> = { 'smtp:': 587, 'smtps:': 465 };

/** Reads the mail server. Problems are reported without the value, which contains a password. */
export function readMail(
  url: string | undefined,
  senders: string | undefined,
): { readonly mail?: MailSettings; readonly problem?: 'url' | 'senders' } {
  if (url === undefined) return senders === undefined ? {} : { problem: 'url' };
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const port = parsed && PORTS[parsed.protocol];
  if (!parsed || port === undefined || parsed.hostname === '') return { problem: 'url' };
  const listed = (senders ?? '').split(',').map((sender) => sender.trim().toLowerCase());
  if (!listed.every(isSender)) return { problem: 'senders' };
  const [user, password] = [decodeURIComponent(parsed.username), decodeURIComponent(parsed.password)];
  return {
    mail: {
      host: parsed.hostname.replace(/^\[|\]$/g, ''),
      port: Number(parsed.port || port),
      isSecure: parsed.protocol === 'smtps:',
      login: user === '' ? undefined : { user, password },
      senders: listed,
    },
  };
}

function isSender(sender: string): boolean {
  const plain = addressFrom(sender.startsWith('@') ? `any${sender}` : sender);
  return plain !== undefined && plain.name === undefined;
}

/** The mail server that workflows may use, if there is one. */
export const emailSettings = defineSettings({
  variables: {
    smtpUrl: {
      variable: 'CAPSTAN_SMTP_URL',
      meaning: 'smtps://user:password@host or smtp://… URL of the mail server for workflows',
    },
    smtpSenders: {
      variable: 'CAPSTAN_SMTP_SENDERS',
      meaning: 'comma-separated sender addresses that workflows may use, or @example.com for a domain',
    },
  },
  read: (read): { readonly mail: MailSettings | undefined } => {
    const { mail, problem } = readMail(read.text('smtpUrl'), read.text('smtpSenders'));
    if (problem === 'url') read.report('smtpUrl', ' must be a URL that starts with smtp:// or smtps://.');
    if (problem === 'senders') {
      read.report('smtpSenders', ' must list the allowed sender addresses, or domains such as @example.com.');
    }
    return { mail };
  },
});

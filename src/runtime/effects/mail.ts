/** An e-mail address, with a display name if there is one. */
export interface MailAddress {
  readonly name?: string;
  readonly address: string;
}

/** One message. */
export interface MailRequest {
  readonly from: MailAddress;
  readonly replyTo?: MailAddress;
  readonly to: readonly MailAddress[];
  readonly cc: readonly MailAddress[];
  readonly bcc: readonly MailAddress[];
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  /** A message that cannot be sent is a result with `sent: false` instead of a failure. */
  readonly isTolerant: boolean;
}

/** What became of a message. */
export interface MailResult {
  readonly sent: boolean;
  /** Made from the effect id, so that every attempt sends the same message. */
  readonly messageId: string;
  readonly provider: string;
  readonly idempotencyKey: string;
  /** Addresses that the mail server rejected while it accepted others. */
  readonly rejected?: readonly string[];
  readonly error?: string;
}

/** The limits of a message. */
export const MAIL_LIMITS = { recipients: 50, subjectCharacters: 500, bodyCharacters: 262_144 } as const;

const LOCAL_MAX = 64;
const ADDRESS_MAX = 254;
const NAME_MAX = 128;
const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const DOMAIN = /^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/** Parses `ann@example.com` or `Ann <ann@example.com>`; undefined for anything else. */
export function addressFrom(text: string): MailAddress | undefined {
  if (text.length > NAME_MAX + ADDRESS_MAX) return undefined;
  const [, name = '', bracketed] = /^([^<>]*)<([^<>]*)>$/.exec(text.trim()) ?? [];
  const address = (bracketed ?? text).trim();
  const at = address.lastIndexOf('@');
  const isValid =
    address.length <= ADDRESS_MAX &&
    at <= LOCAL_MAX &&
    LOCAL.test(address.slice(0, Math.max(0, at))) &&
    DOMAIN.test(address.slice(at + 1)) &&
    !hasControls(name);
  if (!isValid) return undefined;
  const shown = name.trim().replace(/^"(.*)"$/, '$1');
  return shown === '' ? { address } : { name: shown, address };
}

/** Whether a text contains control characters, with which it could add header lines. */
export function hasControls(text: string): boolean {
  return /[\p{Cc}\u2028\u2029]/u.test(text);
}

/** The domain of an address, in lower case. */
export function domainOf({ address }: MailAddress): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

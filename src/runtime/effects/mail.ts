export interface MailAddress {
  readonly name?: string;
  readonly address: string;
}

/** One message, to be sent as it is. */
export interface MailRequest {
  readonly from: MailAddress;
  readonly replyTo?: MailAddress;
  readonly to: readonly MailAddress[];
  readonly cc: readonly MailAddress[];
  readonly bcc: readonly MailAddress[];
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  /** That it could not be sent is an outcome like any other. */
  readonly isTolerant: boolean;
}

export interface MailResult {
  readonly sent: boolean;
  /** Comes from the identity of the effect: however often it is sent, it is the same message. */
  readonly messageId: string;
  readonly provider: string;
  readonly idempotencyKey: string;
  /** Addresses that the mail server did not take, while it took others. */
  readonly rejected?: readonly string[];
  readonly error?: string;
}

/** What a message may have at most. */
export const MAIL_LIMITS = { recipients: 50, subjectCharacters: 500, bodyCharacters: 262_144 } as const;

const LOCAL_MAX = 64;
const ADDRESS_MAX = 254;
const NAME_MAX = 128;
const LOCAL = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const DOMAIN = /^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/** `somebody@example.com`, or `Some Body <somebody@example.com>`; undefined for anything that might mean more. */
export function addressFrom(text: string): MailAddress | undefined {
  if (text.length > NAME_MAX + ADDRESS_MAX) return undefined;
  const [, name = '', bracketed] = /^([^<>]*)<([^<>]*)>$/.exec(text.trim()) ?? [];
  const address = (bracketed ?? text).trim();
  const at = address.lastIndexOf('@');
  const isSound =
    address.length <= ADDRESS_MAX &&
    at <= LOCAL_MAX &&
    LOCAL.test(address.slice(0, Math.max(0, at))) &&
    DOMAIN.test(address.slice(at + 1)) &&
    !hasControls(name);
  if (!isSound) return undefined;
  const shown = name.trim().replace(/^"(.*)"$/, '$1');
  return shown === '' ? { address } : { name: shown, address };
}

/** A line that goes into a header must be one line, or it could say more than its author. */
export function hasControls(text: string): boolean {
  return /[\p{Cc}\u2028\u2029]/u.test(text);
}

export function domainOf({ address }: MailAddress): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}

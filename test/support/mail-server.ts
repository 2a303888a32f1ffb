import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

/** A message as it arrived. */
export interface Letter {
  readonly from: string;
  readonly to: readonly string[];
  readonly raw: string;
  /** By their names in small letters, folded lines made one. */
  readonly headers: ReadonlyMap<string, string>;
  /** Who logged in to send it. */
  readonly user: string | undefined;
}

export const MAIL_LOGIN = { user: 'capstan', password: 'p@ss/word' };

/** A mail server that keeps what it is given. */
export class MailServer {
  readonly letters: Letter[] = [];
  /** What it did not take. */
  readonly turnedAway: Letter[] = [];
  readonly #server: SMTPServer;
  #onLetter: () => void = () => {};
  /** How often somebody told it who they are. */
  logins = 0;
  /** Answers to the next letters, before it takes them: a status for each. */
  readonly refusals: number[] = [];
  /** Until when it does not say that it has taken a letter. */
  silence: Promise<void> = Promise.resolve();
  /** Addresses that it does not know. */
  readonly unknown = new Set<string>();

  private constructor(options: SMTPServerOptions) {
    this.#server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _session, done) => {
        this.logins++;
        const isRight = username === MAIL_LOGIN.user && password === MAIL_LOGIN.password;
        done(isRight ? null : new Error('no such user'), isRight ? { user: username } : undefined);
      },
      onRcptTo: ({ address }, _session, done) =>
        done(this.unknown.has(address) ? Object.assign(new Error('nobody here'), { responseCode: 550 }) : undefined),
      onData: (stream, { envelope, user }, done) => {
        void text(stream).then(async (raw) => {
          const from = envelope.mailFrom ? envelope.mailFrom.address : '';
          const to = envelope.rcptTo.map(({ address }) => address);
          const letter = { from, to, raw, headers: headersOf(raw), user: user as string | undefined };
          const status = this.refusals.shift();
          (status === undefined ? this.letters : this.turnedAway).push(letter);
          this.#onLetter();
          await this.silence;
          done(status === undefined ? null : Object.assign(new Error('not now'), { responseCode: status }));
        });
      },
      ...options,
    });
    // A client that is cut off is none of its business.
    this.#server.on('error', () => {});
  }

  static async open(options: SMTPServerOptions = {}): Promise<MailServer> {
    const server = new MailServer(options);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  /** Settles with the next letter that comes, before it is said to be taken. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#onLetter = resolve;
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

function headersOf(raw: string): ReadonlyMap<string, string> {
  const [head = ''] = raw.split('\r\n\r\n', 1);
  const lines = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n');
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
}

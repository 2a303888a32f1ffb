import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { UsageError } from './exit.ts';

/** The width that is assumed when a terminal does not report one. */
const COLUMNS = 80;

/** The environment of a command: its streams, prompts and environment variables. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Both input and output are a terminal, so the user can be prompted. */
  readonly isInteractive: boolean;
  readonly hasColours: boolean;
  /** The width of the progress line; undefined when the output cannot be redrawn. */
  readonly liveColumns: number | undefined;
  out(text: string): void;
  err(text: string): void;
  ask(question: string): Promise<string>;
  /** Prompts without echoing the answer. */
  askSecret(question: string): Promise<string>;
  /** Reads standard input to its end. */
  input(): Promise<string>;
  /** A signal that aborts on Ctrl-C. */
  interrupted(): AbortSignal;
}

/** The part of `process` that a terminal needs; tests pass their own streams. */
export interface Streams {
  readonly env: Terminal['environment'];
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream;
}

/** The terminal of this process. */
export function realTerminal(): Terminal {
  process.stdout.on('error', exitOnBrokenPipe);
  return terminalOn(process);
}

/** Builds a terminal on the given streams. */
export function terminalOn({ env, stdin, stdout, stderr }: Streams): Terminal {
  const supportsAnsi = stdout.isTTY === true && env.TERM !== 'dumb';
  return {
    environment: env,
    isInteractive: stdin.isTTY === true && stdout.isTTY === true,
    hasColours: supportsAnsi && (env.NO_COLOR ?? '') === '',
    liveColumns: supportsAnsi ? (stdout.columns ?? COLUMNS) : undefined,
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    ask: (question) => ask(question, stdin, stderr),
    askSecret: async (question) => {
      stderr.write(question);
      const answer = await ask('', stdin, new Writable({ write: (_chunk, _encoding, done) => done() }));
      stderr.write('\n');
      return answer;
    },
    input: async () => {
      let text = '';
      for await (const piece of stdin.setEncoding('utf8')) text += piece;
      return text;
    },
    interrupted: () => {
      const controller = new AbortController();
      process.once('SIGINT', () => controller.abort(new Interrupted()));
      return controller.signal;
    },
  };
}

/** Exits quietly when the reader of the output is gone, as in `capstan … | head`. */
function exitOnBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}

/** The user cancelled a prompt with Ctrl-C or closed the input. */
export class PromptCancelled extends UsageError {}

/** The user pressed Ctrl-C while a command was watching something. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Prompts for one line. Ctrl-C and the end of the input cancel the command. */
async function ask(question: string, input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input, output, terminal: true });
  const cancelled = new Promise<never>((_resolve, reject) => {
    const cancel = (): void => reject(new PromptCancelled('Cancelled. Nothing was changed.'));
    lines.once('SIGINT', () => output.write('\n')).once('SIGINT', cancel);
    lines.once('close', cancel);
  });
  try {
    return await Promise.race([lines.question(question), cancelled]);
  } finally {
    lines.close();
  }
}

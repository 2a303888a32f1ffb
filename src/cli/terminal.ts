import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { UsageError } from './exit.ts';

/** Of a terminal that does not say how wide it is. */
const COLUMNS = 80;

/** What a command has of the machine: where it writes, whom it may ask, what it was told beforehand. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Somebody sits there and can be asked. */
  readonly isInteractive: boolean;
  readonly hasColours: boolean;
  /** How wide a line may be that is written anew again and again; undefined where none can be. */
  readonly liveColumns: number | undefined;
  out(text: string): void;
  err(text: string): void;
  ask(question: string): Promise<string>;
  /** Asks without showing the answer. */
  askSecret(question: string): Promise<string>;
  /** Everything that is piped in. */
  input(): Promise<string>;
  /** Aborts once the person has had enough. */
  interrupted(): AbortSignal;
}

/** The streams of a process, and what it was told beforehand. */
export interface Streams {
  readonly env: Terminal['environment'];
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream;
}

export function realTerminal(): Terminal {
  process.stdout.on('error', endWithReader);
  return terminalOn(process);
}

export function terminalOn({ env, stdin, stdout, stderr }: Streams): Terminal {
  const isClever = stdout.isTTY === true && env.TERM !== 'dumb';
  return {
    environment: env,
    isInteractive: stdin.isTTY === true && stdout.isTTY === true,
    hasColours: isClever && (env.NO_COLOR ?? '') === '',
    liveColumns: isClever ? (stdout.columns ?? COLUMNS) : undefined,
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

/** Who reads the output may have seen enough, as `head` has: then there is nobody left to tell anything. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
}

/** The person was asked something and has left. */
export class NotAnswered extends UsageError {}

/** The person has pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Ctrl-C and the end of the input are answers, too: that nothing is to be done. */
async function ask(question: string, input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input, output, terminal: true });
  const gone = new Promise<never>((_resolve, reject) => {
    const leave = (): void => reject(new NotAnswered('Nothing was done.'));
    lines.once('SIGINT', () => output.write('\n')).once('SIGINT', leave);
    lines.once('close', leave);
  });
  try {
    return await Promise.race([lines.question(question), gone]);
  } finally {
    lines.close();
  }
}

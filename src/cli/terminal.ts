import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

/** What a command has of the machine: where it writes, whom it may ask, what it was told beforehand. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Somebody sits there and can be asked. */
  readonly isInteractive: boolean;
  readonly hasColours: boolean;
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

export function realTerminal(): Terminal {
  const { env, stdin, stdout, stderr } = process;
  stdout.on('error', endWithReader);
  return {
    environment: env,
    isInteractive: stdin.isTTY === true && stdout.isTTY === true,
    hasColours: stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb',
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    ask: (question) => ask(question, stderr),
    askSecret: async (question) => {
      stderr.write(question);
      const answer = await ask('', new Writable({ write: (_chunk, _encoding, done) => done() }));
      stderr.write('\n');
      return answer;
    },
    input: () => stdin.setEncoding('utf8').reduce((text: string, chunk: string) => text + chunk, ''),
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

/** The person has pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

async function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}

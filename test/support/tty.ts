import { PassThrough, Writable } from 'node:stream';
import { runCommandLine } from '../../src/cli/program.ts';
import { type Streams, terminalOn } from '../../src/cli/terminal.ts';

/** What a person types once they see something. */
export type Typing = readonly [seen: RegExp | string, typed: string];

export interface Sat {
  readonly code: number;
  /** What is on the screen at the end, as far as it can be read. */
  readonly screen: string;
  /** Everything that was sent to the terminal, control sequences and all. */
  readonly sent: string;
}

/** Runs the `capstan` command at a terminal, where somebody reads and types. */
export async function sitAt(
  args: readonly string[],
  env: Streams['env'],
  typing: readonly Typing[] = [],
): Promise<Sat> {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const left = [...typing];
  let [sent, unread] = ['', ''];
  const output = Object.assign(
    new Writable({
      write(chunk, _encoding, done) {
        sent += chunk;
        unread += chunk;
        const [next] = left;
        if (next && (typeof next[0] === 'string' ? unread.includes(next[0]) : next[0].test(unread))) {
          left.shift();
          unread = '';
          // After whoever asks has begun to listen.
          setImmediate(() => stdin.write(next[1]));
        }
        done();
      },
    }),
    { isTTY: true },
  );
  const code = await runCommandLine(args, terminalOn({ env, stdin, stdout: output, stderr: output }));
  if (left.length > 0) throw new Error(`nobody asked for ${JSON.stringify(left[0])}:\n${screenOf(sent)}`);
  return { code, screen: screenOf(sent), sent };
}

const ESCAPE = '\x1b';
const SEQUENCE = new RegExp(`${ESCAPE}\\[([0-9;]*)([A-Za-z])|\\r|\\n|[^${ESCAPE}\\r\\n]+`, 'g');

/** What a terminal shows of what it is sent: lines, and a cursor that is moved about. Colours are left out. */
export function screenOf(sent: string): string {
  const lines: string[] = [''];
  let [row, column] = [0, 0];
  const put = (text: string): void => {
    const line = lines[row]!.padEnd(column);
    lines[row] = line.slice(0, column) + text + line.slice(column + text.length);
    column += text.length;
  };
  const moves: Record<string, (by: number) => void> = {
    A: (by) => (row = Math.max(0, row - (by || 1))),
    C: (by) => (column += by || 1),
    D: (by) => (column = Math.max(0, column - (by || 1))),
    G: (by) => (column = (by || 1) - 1),
    J: () => {
      lines[row] = lines[row]!.slice(0, column);
      lines.length = row + 1;
    },
    K: () => (lines[row] = lines[row]!.slice(0, column)),
    m: () => {},
  };
  for (const [piece, by, letter] of sent.matchAll(SEQUENCE)) {
    if (letter !== undefined) {
      const move = moves[letter];
      if (!move) throw new Error(`this terminal does not know ${JSON.stringify(piece)}`);
      move(Number(by));
    } else if (piece === '\r') column = 0;
    else if (piece === '\n') {
      [row, column] = [row + 1, 0];
      lines[row] ??= '';
    } else put(piece);
  }
  return lines.map((line) => line.trimEnd()).join('\n');
}

import type { CommandGroup } from '../../src/cli/command.ts';
import { runCommandLine } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

/** What came of a command line. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** All that a terminal would have shown. */
  readonly output: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes
  readonly json: any;
}

export interface Sitting {
  readonly environment?: Record<string, string>;
  /** What is piped in. */
  readonly input?: string;
  /** What the person types, one answer to each question. Without any, nobody sits there. */
  readonly typed?: readonly string[];
  /** Told of everything that is printed. */
  readonly onOut?: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** What was called in this file of tests: commands, and commands of groups. */
export const triedCommands = new Set<string>();

/** Commands of groups that no test in this file has called. */
export function untried(groups: readonly CommandGroup[]): string[] {
  const all = groups.flatMap(({ name, commands }) => commands.map((spec) => `${name} ${spec.name}`));
  return all.filter((command) => !triedCommands.has(command));
}

/** Runs the `capstan` command in this process, as it runs in one of its own. */
export async function capstan(args: readonly string[], sitting: Sitting = {}): Promise<Ran> {
  if (!args.includes('--help')) triedCommands.add(args[0] ?? '').add(args.slice(0, 2).join(' '));
  const { environment = {}, input = '', typed, onOut = () => {}, signal } = sitting;
  const answers = [...(typed ?? [])];
  let [out, err, output] = ['', '', ''];
  const terminal: Terminal = {
    environment,
    isInteractive: typed !== undefined,
    hasColours: false,
    liveColumns: undefined,
    out: (text) => {
      out += text;
      output += text;
      onOut(text);
    },
    err: (text) => {
      err += text;
      output += text;
    },
    ask: async () => answers.shift() ?? '',
    askSecret: async () => answers.shift() ?? '',
    input: async () => input,
    interrupted: () => signal ?? new AbortController().signal,
  };
  const code = await runCommandLine(args, terminal);
  return { code, out, err, output, json: parse(out) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
